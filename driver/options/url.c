// SPDX-License-Identifier: MIT
/* URLs as people type them: an address without a scheme means HTTP. engine/url.c is strict. */
#include "options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engines.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/suggest.h"

/* Accept "tcp:…" too: if it is wrong, its own check has the better message. */
static bool has_scheme(const char *word)
{
	return strstr(word, "://") || engine_find(engines, word);
}

/* A word with a port, or that is an address of this host, is meant as an address. */
static bool is_address(const char *word)
{
	size_t length = strcspn(word, "/?#");
	autofree char *host = strndup(word, length);
	const char *colon = host ? strrchr(host, ':') : NULL;
	struct in_addr address;

	if (!host)
		return false;
	return *host == '[' || (colon && isdigit((unsigned char)colon[1])) ||
	       !strcmp(host, "localhost") || inet_pton(AF_INET, host, &address) == 1;
}

/* A word instead of a URL may be a mistyped subcommand, like "swep". */
static const char *nearest_command(const char *word)
{
	static const char *const commands[] = {"sweep", "run", "fleet", "agent", "help"};
	struct suggestion suggestion = {0};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		suggest_try(&suggestion, word, strlen(word), commands[i]);
	return suggestion.best;
}

int options_complete_url(struct options *options, char **word, char **ret_error)
{
	const char *dot = strrchr(*word, '.');
	char *url, **kept;

	if (has_scheme(*word))
		return 0;
	if (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")))
		return refuse(ret_error, "'%s' is a scenario: write sojourn-drive run %s", *word,
			      *word);
	if (!is_address(*word) && nearest_command(*word))
		return refuse(ret_error, "'%s' is no URL: did you mean sojourn-drive %s?", *word,
			      nearest_command(*word));
	if (!is_address(*word))
		return 0;
	if (asprintf(&url, "http://%s", *word) < 0)
		return -ENOMEM;
	kept = ARRAY_APPEND(options->urls, options->url_count);
	if (!kept) {
		free(url);
		return -ENOMEM;
	}
	*word = *kept = url;
	return 0;
}
