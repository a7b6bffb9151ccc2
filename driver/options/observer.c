// SPDX-License-Identifier: MIT
/* Options for the observer that marks the measured phase, and access to it. */
#include "rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/observers.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

#define FILE_MAX       (1U << 20)
#define TOKEN_VARIABLE "SOJOURN_OBSERVER_TOKEN"

/* A port alone means this host, as in --listen. Without a scheme, http is meant, as in a target. */
static const char *complete_url(const char *value, char **ret_url)
{
	static const char wrong[] = "is not an observer's address; write it like 9180, "
				    "http://127.0.0.1:9180 or https://server:9180";
	bool port = *value && !value[strspn(value, "0123456789")];
	size_t scheme = !strncmp(value, "http://", 7) ? 7 : !strncmp(value, "https://", 8) ? 8 : 0;

	if (scheme ? !value[scheme] : strstr(value, "://") || !(port || strchr(value, ':')))
		return wrong;
	*ret_url = text_format("%s%s%s", scheme ? "" : "http://", port ? "127.0.0.1:" : "", value);
	return *ret_url ? NULL : "does not fit into memory";
}

static bool is_given(const struct observer_access *access, const char *url)
{
	for (size_t i = 0; i < access->url_count; i++)
		if (!strcmp(access->urls[i], url))
			return true;
	return false;
}

static int add_url(struct observer_access *access, const char *value, char **ret_error)
{
	autofree char *url = NULL;
	const char *wrong = complete_url(value, &url);
	char **added;

	if (wrong)
		return refuse(ret_error, "--observer: '%s' %s", value, wrong);
	if (is_given(access, url))
		return refuse(ret_error, "--observer: '%s' is given twice; give each observer once",
			      url);
	if (access->url_count == OBSERVERS_MAX)
		return refuse(ret_error, "--observer: at most %u are allowed", OBSERVERS_MAX);
	added = ARRAY_APPEND(access->urls, access->url_count);
	if (!added)
		return -ENOMEM;
	*added = TAKE_PTR(url);
	return 0;
}

int option_apply_observer(void *target, const char *value, char **ret_error)
{
	struct observer_access *access = target;

	/* "fleet", or a NATS server's address: whether it is one says fleet/observers/lookouts.c. */
	if (strcmp(value, "fleet") && strncmp(value, "nats://", 7) && strncmp(value, "tls://", 6))
		return add_url(access, value, ret_error);
	if (access->fleet)
		return refuse(ret_error,
			      "--observer: '%s' is a second group of observers beside '%s'; leave "
			      "one out",
			      value, access->fleet);
	access->fleet = value;
	return 0;
}

void option_clear_observers(struct observer_access *access)
{
	for (size_t i = 0; i < access->url_count; i++)
		free(access->urls[i]);
	free(access->urls);
	free(access->token);
}

/* @where: the name of the option or variable. Messages never quote the token. */
static int take_token(struct observer_access *access, const char *where, const char *text,
		      size_t size, char **ret_error)
{
	char *token = strndup(text, size);
	size_t length;

	if (!token)
		return -ENOMEM;
	length = strcspn(token, "\r\n");
	token[length] = '\0';
	free(access->token);
	access->token = token;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)token[i]))
			length = 0;
	if (!length)
		return refuse(ret_error,
			      "%s: its first line is no token: it must be of letters, digits and "
			      "signs",
			      where);
	return 0;
}

int option_apply_observer_token(void *access, const char *value, char **ret_error)
{
	autofree char *text = NULL;
	size_t length;
	int err =
		option_read_file("observer-token-file", value, FILE_MAX, &text, &length, ret_error);

	return err ? err : take_token(access, "--observer-token-file", text, length, ret_error);
}

int option_apply_observer_ca(void *path, const char *value, char **ret_error)
{
	static const char mark[] = "-----BEGIN CERTIFICATE-----";
	autofree char *text = NULL;
	size_t length;
	int err = option_read_file("observer-ca", value, FILE_MAX, &text, &length, ret_error);

	if (err)
		return err;
	if (!memmem(text, length, mark, strlen(mark)))
		return refuse(ret_error, "--observer-ca: '%s' holds no certificate (PEM)", value);
	*(const char **)path = value;
	return 0;
}

static int check_assertions(const struct options *options, char **ret_error)
{
	for (size_t i = 0;
	     i < options->assertion_count && !observer_is_given(&options->run.observers); i++)
		if (assertion_needs_observer(&options->assertions[i]))
			return refuse(ret_error,
				      "--assert: '%s' is about the observer's count; add "
				      "--observer=URL, or say 'timeouts' for the driver's own",
				      options->assertions[i].text);
	return 0;
}

/* The group's NATS server may be the one with certificates. */
static int check_ca(const struct observer_access *access, char **ret_error)
{
	for (size_t i = 0; access->ca_path && !access->fleet && i < access->url_count; i++)
		if (strncmp(access->urls[i], "https:", 6))
			return refuse(ret_error,
				      "--observer-ca: '%s' has no certificate; it goes with "
				      "https:",
				      access->urls[i]);
	return 0;
}

static int check_group(const struct observer_access *access, char **ret_error)
{
	const char *given = access->credentials_path ? "credentials"
			    : access->cert_path	     ? "cert"
			    : access->key_path	     ? "key"
						     : NULL;

	if (given && !access->fleet)
		return refuse(ret_error,
			      "--observer-%s: it is for a NATS server; add --observer nats://HOST",
			      given);
	if (access->token && !access->url_count && access->fleet)
		return refuse(ret_error, "--observer-token-file: agents at the NATS server show "
					 "their observers' tokens; give it to them");
	return 0;
}

int option_settle_access(struct observer_access *access, char **ret_error)
{
	const char *variable = getenv(TOKEN_VARIABLE);
	int err;

	if (!observer_is_given(access) && (access->token || access->ca_path))
		return refuse(ret_error, "%s: there is no observer; add --observer=URL",
			      access->token ? "--observer-token-file" : "--observer-ca");
	err = check_ca(access, ret_error);
	if (!err)
		err = check_group(access, ret_error);
	if (err || !access->url_count || access->token || !variable)
		return err;
	return take_token(access, TOKEN_VARIABLE, variable, strlen(variable), ret_error);
}

int option_settle_observer(struct options *options, char **ret_error)
{
	int err = check_assertions(options, ret_error);

	return err ? err : option_settle_access(&options->run.observers, ret_error);
}

/* clang-format off */
static const struct cli_option rows[] = {
	{"observer", 0, "URL",
	 "mark the measured phase on the observer at URL\n"
	 "(sojourn observe --listen; http: or https:) and\nmerge its findings into the report; one for each host.\n"
	 "nats://HOST[:PORT]: all that wait there\n(sojourn-drive agent --observer) and see a target;\nfleet: at --via",
	 CLI_APPLY, AT(run.observers), .apply = option_apply_observer},
	{"observer-token-file", 0, "FILE",
	 "show it the bearer token that is FILE's first line\n(default: that in SOJOURN_OBSERVER_TOKEN, if any)",
	 CLI_APPLY, AT(run.observers), .apply = option_apply_observer_token},
	{"observer-ca", 0, "FILE",
	 "its certificate must come from an authority in FILE\n(PEM), instead of one of the system's",
	 CLI_APPLY, AT(run.observers.ca_path), .apply = option_apply_observer_ca},
	{"observer-credentials", 0, "FILE",
	 "show the NATS server the login in FILE: an nkey's\nseed, a .creds file, USER:PASSWORD, or a token",
	 CLI_TEXT, AT(run.observers.credentials_path), .minimum = 1, .allowed = "the file's name is empty"},
	{"observer-cert", 0, "FILE", "show it this certificate, in PEM", CLI_TEXT, AT(run.observers.cert_path), .minimum = 1,
	 .allowed = "the file's name is empty"},
	{"observer-key", 0, "FILE", "its key, if it is in a file of its own", CLI_TEXT, AT(run.observers.key_path),
	 .minimum = 1, .allowed = "the file's name is empty"},
};
/* clang-format on */

const struct cli_table option_observer = {"Observer", rows, ARRAY_SIZE(rows), 0};
