// SPDX-License-Identifier: MIT
/* Where metrics are sent by OpenTelemetry's protocol: the rows, and their checks. */
#include "otlp.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "listen.h"
#include "sojourn/clock.h"
#include "sojourn/text.h"

#define DEFAULT_PATH	    "/v1/metrics"
#define DEFAULT_INTERVAL_NS (15 * NSEC_PER_SEC)
#define HEADER_MAX	    8192

/* Set the URL. If it has no path, append the path that the protocol defines. */
static const char *set_url(void *settings, const char *value)
{
	struct otlp_target *target = settings;
	static const char wanted[] = "http://HOST:PORT or https://HOST:PORT, and a path or none";
	const char *host = strstr(value, "://");

	if (!host || (strncmp(value, "http:", 5) && strncmp(value, "https:", 6)))
		return wanted;
	host += 3;
	if (memchr(host, '@', strcspn(host, "/?#")))
		return "a URL without a password: a header of --otlp-header-file has it";
	if (!*host || strchr("/?#:", *host) || strpbrk(value, " \t\r\n"))
		return wanted;
	host += strcspn(host, "/?#");
	target->url = *host && strcmp(host, "/")
			      ? value
			      : text_format("%.*s" DEFAULT_PATH, (int)(host - value), value);
	return target->url ? NULL : "less memory in use";
}

/* RFC 9110, 5.1 and 5.5. Headers that we send ourselves cannot be replaced. */
static bool is_header(const char *line)
{
	size_t name = strcspn(line, ":");

	for (size_t i = 0; i < name; i++)
		if (!isalnum((unsigned char)line[i]) && !strchr("!#$%&'*+-.^_`|~", line[i]))
			return false;
	for (const char *c = line + name; *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return false;
	return name && line[name] && strncasecmp(line, "content-", 8) != 0;
}

static const char *add_header(struct otlp_target *target, const char *line)
{
	if (!is_header(line))
		return "a file of lines 'Name: value', none of them Content-…";
	if (target->header_count == OTLP_HEADERS)
		return "a file of at most 16 headers";
	target->headers[target->header_count] = strdup(line);
	return target->headers[target->header_count++] ? NULL : "less memory in use";
}

static const char *set_headers(void *settings, const char *value)
{
	autofclose FILE *file = fopen(value, "re");
	const char *wrong = file ? NULL : "a file that can be read, of lines 'Name: value'";
	char line[HEADER_MAX];

	while (!wrong && fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, "\r\n");

		if (!line[length] && !feof(file))
			return "a file of lines of at most 8190 characters";
		line[length] = 0;
		if (length)
			wrong = add_header(settings, line);
	}
	return wrong;
}

#define AT(member) CLI_AT(struct observe_options, member)

static const struct cli_option rows[] = {
	{"otlp", 0, "URL",
	 "Also send the metrics to an OpenTelemetry collector (OTLP over HTTP, JSON), at URL's "
	 "path, or at /v1/metrics if it has none.",
	 CLI_SET, AT(otlp), .set = set_url},
	{"otlp-interval", 0, "DURATION", "That often (default 15s).", CLI_DURATION,
	 AT(otlp.interval_ns), .minimum = NSEC_PER_SEC, .maximum = 3600 * NSEC_PER_SEC,
	 .allowed = "a duration from 1s to 1h, e.g. 15s"},
	{"otlp-header-file", 0, "FILE",
	 "Send these headers, a line 'Name: value' each, such as a token's.", CLI_SET, AT(otlp),
	 .set = set_headers},
	{"otlp-ca", 0, "FILE", "Trust the authority in FILE (PEM), not those of the system.",
	 CLI_SET, AT(otlp.ca), .set = options_set_pem},
};

const struct cli_table options_otlp = {NULL, rows, ARRAY_SIZE(rows), 0};

int options_otlp_check(const struct cli_command *command, struct observe_options *options)
{
	struct otlp_target *target = &options->otlp;

	if (!target->url && (target->interval_ns || target->header_count || target->ca))
		return cli_error(command, "--otlp-… requires --otlp");
	if (target->ca && strncmp(target->url, "https:", 6) != 0)
		return cli_error(command, "--otlp-ca is for a URL of https");
	if (target->url && !target->interval_ns)
		target->interval_ns = DEFAULT_INTERVAL_NS;
	target->buckets = options->access.buckets;
	target->secrets[0] = options->access.token;
	target->secrets[1] = options->access.read_token;
	target->secrets[2] = options->access.tls_key;
	return 0;
}
