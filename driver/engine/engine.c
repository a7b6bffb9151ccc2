// SPDX-License-Identifier: MIT
/* Functions shared by all engines, and look-ups in their table. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "payload/detail.h"

const struct engine *engine_find(const struct engine *const *engines, const char *url)
{
	for (; *engines; engines++) {
		size_t length = strlen((*engines)->scheme);

		if (!strncasecmp(url, (*engines)->scheme, length) && url[length] == ':')
			return *engines;
	}
	return NULL;
}

char *engine_forms(const struct engine *const *engines, char *buffer, size_t size)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (; *engines && used < size; engines++)
		if ((*engines)->form)
			used += (size_t)snprintf(buffer + used, size - used, "%s%s",
						 used ? ", " : "", (*engines)->form);
	return buffer;
}

const char *engine_unsampled(const struct engine *engine, const struct request *request)
{
	if (engine->unsampled || !engine->unsampled_with)
		return engine->unsampled;
	return engine->unsampled_with(request);
}

void engine_tell_step(const struct engine_host *host, uint32_t slot, char *text, size_t size)
{
	if (host->clients && host->clients[slot].name)
		detail_add(text, size, "%s %s: ", host->clients[slot].noun,
			   host->clients[slot].name);
}

void engine_tell_result(const struct engine_result *result, char *text, size_t size)
{
	if (result->detail)
		detail_add(text, size, "%s", result->detail);
	else if (result->code)
		detail_add_code(text, size, result->code);
}
