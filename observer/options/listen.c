// SPDX-License-Identifier: MIT
/* The options of the HTTP endpoint and its callers: rows, and options that cannot go together. */
#include "listen.h"

#include <string.h>

#include "options.h"
#include "sinks/http/secrets.h"
#include "sojourn/address.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

/* Set a text from its file, and keep the path: the sink reads the file again when it changes. */
#define SETTER(member, reader)                                            \
	static const char *set_##member(void *settings, const char *path) \
	{                                                                 \
		struct sink_http_access *access = settings;               \
		autofree char *text = NULL;                               \
		const char *wrong = reader(path, &text);                  \
                                                                          \
		if (!wrong) {                                             \
			access->member = TAKE_PTR(text);                  \
			access->files.member = path;                      \
		}                                                         \
		return wrong;                                             \
	}

SETTER(token, http_secrets_read_token)
SETTER(read_token, http_secrets_read_token)
SETTER(tls_cert, http_secrets_read_pem)
SETTER(tls_key, http_secrets_read_pem)
SETTER(tls_client_ca, http_secrets_read_pem)

const char *options_set_pem(void *pem, const char *path)
{
	char *text = NULL;
	const char *wrong = http_secrets_read_pem(path, &text);

	if (!wrong)
		*(const char **)pem = text;
	return wrong;
}

/* Of names in Host headers. Two names with a comma between them would never match one. */
#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

static const char *add_host(void *settings, const char *value)
{
	struct sink_http_access *access = settings;

	if (!*value || value[strspn(value, HOST_CHARACTERS)])
		return "a host's name without a port, e.g. server1.example";
	if (access->host_count == SINK_HTTP_HOSTS)
		return "at most 8 names";
	access->hosts[access->host_count++] = value;
	return NULL;
}

/* Name the way: a client of NATS has no place in a privileged process. */
static int refuse_fleet(void *settings, const char *value, char **ret_error)
{
	(void)settings;
	return refuse(ret_error,
		      "--fleet: '%s': an agent beside the observer waits at the NATS server: "
		      "sojourn-drive agent --fleet %s --observer 9180",
		      value, value);
}

#define AT(member) CLI_AT(struct observe_options, member)

static const char *const buckets[] = {
	[METRICS_COARSE] = "coarse",
	[METRICS_FINE] = "fine",
};

static const struct cli_option rows[] = {
	{"token-file", 0, "FILE",
	 "Answer only who has the bearer token that is FILE's first line (Authorization: Bearer "
	 "TOKEN). Without one, on loopback, all users of the host may read, and only the same user "
	 "and root begin measured phases.",
	 CLI_SET, AT(access), .set = set_token},
	{"read-token-file", 0, "FILE", "The same, for a token that may only read.", CLI_SET,
	 AT(access), .set = set_read_token},
	{"tls-cert", 0, "FILE", "With --tls-key: HTTPS. The certificate and its chain, PEM.",
	 CLI_SET, AT(access), .set = set_tls_cert},
	{"tls-key", 0, "FILE", "The certificate's key, PEM.", CLI_SET, AT(access),
	 .set = set_tls_key},
	{"tls-client-ca", 0, "FILE",
	 "Answer only who has a certificate of this authority (mutual TLS).", CLI_SET, AT(access),
	 .set = set_tls_client_ca},
	{"host", 0, "NAME",
	 "A name that clients may call this endpoint by, besides its addresses; may be repeated.",
	 CLI_SET, AT(access), .set = add_host},
	{"user", 0, "NAME",
	 "Started by root: once everything is open, go on as this user, with the capabilities for "
	 "reading alone. Default: sojourn if there is such a user, or else nobody. root: do not "
	 "change. With a command after --, which runs as root, nothing is changed.",
	 CLI_TEXT, AT(user), .minimum = 1, .allowed = "the name of a user of this host"},
	{"open", 0, NULL,
	 "No TLS and no token are needed, and more than loopback may be listened on: whoever "
	 "reaches "
	 "the port reads everything, and begins and ends measured phases.",
	 CLI_FLAG, AT(open_to_all)},
	{"buckets", 0, "SIZE",
	 "Edges of the histograms of /metrics and --otlp. coarse (default): 17, for alerts and the "
	 "dashboard. fine: 48, and twice as many series.",
	 CLI_WORD, AT(access.buckets), .words = buckets, .maximum = ARRAY_SIZE(buckets),
	 .allowed = "coarse or fine"},
	{"fleet", 0, "URL", NULL, CLI_APPLY, .apply = refuse_fleet},
};

const struct cli_table options_listen = {NULL, rows, ARRAY_SIZE(rows), 0};

static bool is_loopback(const struct sockaddr_storage *storage)
{
	const struct sockaddr *address = (const struct sockaddr *)storage;
	size_t size;

	return address_is_loopback(address->sa_family, address_bytes(address, &size));
}

/* Without any token, every user of the host could change the measurements. */
bool options_own_token(const struct observe_options *options)
{
	return options->listen && !options->open_to_all && !options->access.token &&
	       !options->access.tls_client_ca && is_loopback(&options->address);
}

int options_listen_check(const struct cli_command *command, const struct observe_options *options)
{
	const struct sink_http_access *access = &options->access;
	bool token = access->token || access->read_token || access->tls_client_ca;

	if (!access->tls_cert != !access->tls_key)
		return cli_error(command, "--tls-cert and --tls-key: give both or none");
	if (access->tls_client_ca && !access->tls_key)
		return cli_error(command, "--tls-client-ca is for TLS: give --tls-cert, --tls-key");
	if (!options->listen && (token || access->tls_key || access->host_count))
		return cli_error(command, "--token-file, --tls-* and --host require --listen");
	if (!options->listen && access->buckets != METRICS_COARSE)
		return cli_error(command, "--buckets requires --listen");
	if (options->user && (!options->listen || options->command))
		return cli_error(command, "--user: '%s': only for --listen, without a command",
				 options->user);
	if (options->listen && !is_loopback(&options->address) && !options->open_to_all &&
	    !(access->tls_key && token))
		return cli_error(command,
				 "--listen: more than loopback: give --tls-cert, --tls-key and "
				 "--token-file or --tls-client-ca; or --open, so that whoever "
				 "reaches the port reads everything");
	return 0;
}
