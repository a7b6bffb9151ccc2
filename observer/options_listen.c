// SPDX-License-Identifier: MIT
/* Where the HTTP endpoint listens and whom it answers: the rows, and what cannot go together. */
#include "options_listen.h"

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
static const char *read_token(const char *path, const char **ret_token)
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
	*ret_token = TAKE_PTR(text);
	return NULL;
}

static const char *set_token(void *target, const char *value)
{
	return read_token(value, &((struct observe_options *)target)->access.token);
}

static const char *set_read_token(void *target, const char *value)
{
	return read_token(value, &((struct observe_options *)target)->access.read_token);
}

const char *options_read_pem(const char *path, const char **ret_text)
{
	autofree char *text = NULL;

	if (read_text(path, &text) < 0 || !strstr(text, "-----BEGIN "))
		return "a PEM file that can be read";
	*ret_text = TAKE_PTR(text);
	return NULL;
}

static const char *set_tls_cert(void *target, const char *value)
{
	return options_read_pem(value, &((struct observe_options *)target)->access.tls_cert);
}

static const char *set_tls_key(void *target, const char *value)
{
	return options_read_pem(value, &((struct observe_options *)target)->access.tls_key);
}

static const char *set_tls_client_ca(void *target, const char *value)
{
	return options_read_pem(value, &((struct observe_options *)target)->access.tls_client_ca);
}

static const char *add_host(void *target, const char *value)
{
	struct sink_http_access *access = &((struct observe_options *)target)->access;

	if (!*value || strpbrk(value, ":/ "))
		return "a host's name without a port, e.g. server1.example";
	if (access->host_count == SINK_HTTP_HOSTS)
		return "at most 8 names";
	access->hosts[access->host_count++] = value;
	return NULL;
}

static const char *set_open(void *target, const char *value)
{
	(void)value;
	((struct observe_options *)target)->open_to_all = true;
	return NULL;
}

const struct cli_option options_listen_rows[OPTIONS_LISTEN_ROWS] = {
	{"token-file", 0, "FILE",
	 "Answer only who has the bearer token that is FILE's first line (Authorization: Bearer "
	 "TOKEN).",
	 set_token},
	{"read-token-file", 0, "FILE", "The same, for a token that may only read.", set_read_token},
	{"tls-cert", 0, "FILE", "With --tls-key: HTTPS. The certificate and its chain, PEM.",
	 set_tls_cert},
	{"tls-key", 0, "FILE", "The certificate's key, PEM.", set_tls_key},
	{"tls-client-ca", 0, "FILE",
	 "Answer only who has a certificate of this authority (mutual TLS).", set_tls_client_ca},
	{"host", 0, "NAME",
	 "A name that clients may call this endpoint by, besides its addresses; may be repeated.",
	 add_host},
	{"open", 0, NULL,
	 "Listen on more than loopback without TLS and a token: whoever reaches the port reads "
	 "everything.",
	 set_open},
};

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(in6) ||
		       (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
	return ntohl(in->sin_addr.s_addr) >> 24 == 127;
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
	if (options->listen && !is_loopback(&options->address) && !options->open_to_all &&
	    !(access->tls_key && token))
		return cli_error(command,
				 "--listen: more than loopback: give --tls-cert, --tls-key and "
				 "--token-file or --tls-client-ca; or --open, so that whoever "
				 "reaches the port reads everything");
	return 0;
}
