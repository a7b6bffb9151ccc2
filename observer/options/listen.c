// SPDX-License-Identifier: MIT
/* Where the HTTP endpoint listens and whom it answers: the rows, and what cannot go together. */
#include "listen.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>

#include "options.h"
#include "sojourn/cleanup.h"

/* Enough for a chain of certificates. */
#define FILE_MAX (256 * 1024)
/* 128 bits in base64, so that nobody guesses it. */
#define TOKEN_MIN 22

static int read_text(const char *path, char **ret_text)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	autofree char *text = NULL;
	ssize_t length;

	if (fd < 0)
		return -errno;
	text = calloc(1, FILE_MAX);
	if (!text)
		return -ENOMEM;
	length = read(fd, text, FILE_MAX - 1);
	if (length < 0)
		return -errno;
	if (length == FILE_MAX - 1)
		return -EFBIG;
	*ret_text = TAKE_PTR(text);
	return 0;
}

/* The file's first line; whoever may read the file has the token. */
static const char *set_token(void *token, const char *path)
{
	autofree char *text = NULL;
	size_t length;

	if (read_text(path, &text) < 0)
		return "a file that can be read, with the token as its first line";
	length = strcspn(text, "\r\n");
	text[length] = 0;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]))
			return "a file whose first line is a token: letters, digits, signs";
	if (length < TOKEN_MIN)
		return "a file with a token of at least 22 characters: openssl rand -base64 24";
	*(const char **)token = TAKE_PTR(text);
	return NULL;
}

const char *options_set_pem(void *pem, const char *path)
{
	autofree char *text = NULL;

	if (read_text(path, &text) < 0 || !strstr(text, "-----BEGIN "))
		return "a PEM file that can be read";
	*(const char **)pem = TAKE_PTR(text);
	return NULL;
}

static const char *add_host(void *settings, const char *value)
{
	struct sink_http_access *access = settings;

	if (!*value || strpbrk(value, ":/ "))
		return "a host's name without a port, e.g. server1.example";
	if (access->host_count == SINK_HTTP_HOSTS)
		return "at most 8 names";
	access->hosts[access->host_count++] = value;
	return NULL;
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
	 CLI_SET, AT(access.token), .set = set_token},
	{"read-token-file", 0, "FILE", "The same, for a token that may only read.", CLI_SET,
	 AT(access.read_token), .set = set_token},
	{"tls-cert", 0, "FILE", "With --tls-key: HTTPS. The certificate and its chain, PEM.",
	 CLI_SET, AT(access.tls_cert), .set = options_set_pem},
	{"tls-key", 0, "FILE", "The certificate's key, PEM.", CLI_SET, AT(access.tls_key),
	 .set = options_set_pem},
	{"tls-client-ca", 0, "FILE",
	 "Answer only who has a certificate of this authority (mutual TLS).", CLI_SET,
	 AT(access.tls_client_ca), .set = options_set_pem},
	{"host", 0, "NAME",
	 "A name that clients may call this endpoint by, besides its addresses; may be repeated.",
	 CLI_SET, AT(access), .set = add_host},
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
};

const struct cli_table options_listen = {NULL, rows, ARRAY_SIZE(rows), 0};

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(in6) ||
		       (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
	return ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

/* Somebody on the host is not yet somebody who may change what it measures. */
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
		return cli_error(command, "who may ask is for --listen, which is not given");
	if (!options->listen && access->buckets != METRICS_COARSE)
		return cli_error(command, "--buckets is for --listen, which is not given");
	if (options->listen && !is_loopback(&options->address) && !options->open_to_all &&
	    !(access->tls_key && token))
		return cli_error(command,
				 "--listen: more than loopback: give --tls-cert, --tls-key and "
				 "--token-file or --tls-client-ca; or --open, so that whoever "
				 "reaches the port reads everything");
	return 0;
}
