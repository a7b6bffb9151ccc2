// SPDX-License-Identifier: MIT
/* The table of engines. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#include "engine_h2.h"
#include "engine_http.h"
#include "engine_null.h"
#include "engine_stream.h"
#include "engine_udp.h"

static const struct engine *const engines[] = {
	&engine_http, &engine_https, &engine_h2,   &engine_h2c,
	&engine_tcp,  &engine_udp,   &engine_unix, &engine_null,
};

const struct engine *engine_find(const char *scheme)
{
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++)
		if (!strcmp(engines[i]->scheme, scheme))
			return engines[i];
	return NULL;
}

const char *engine_unsampled(const struct engine *engine, const struct options *options)
{
	if (engine->sampled)
		return engine->unsampled_with ? engine->unsampled_with(options) : NULL;
	return engine->unsampled ? engine->unsampled
				 : "the driver does not sample this kind of target";
}

char *engine_forms(char *buffer, size_t size)
{
	size_t used = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(engines) && used < size; i++)
		if (engines[i]->form)
			used += (size_t)snprintf(buffer + used, size - used, "%s%s",
						 used ? ", " : "", engines[i]->form);
	return buffer;
}
