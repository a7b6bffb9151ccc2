// SPDX-License-Identifier: MIT
/*
 * Any head of a request before the endpoint's guard. An admitted request names this endpoint once,
 * comes from no other origin, and has the required token. The parts of libmicrohttpd and GnuTLS are
 * made up; the guard's own code is the program's.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <jansson.h>

#include "fuzz.h"
#include "sinks/http/address.h"
#include "sinks/http/guard.h"

#define HEADERS	   32U
#define TOKEN	   "token-that-may-do-everything"
#define READ_TOKEN "token-that-only-may-read-it"
#define OWN_TOKEN  "token-that-was-made-for-you"
#define NAME	   "server1.example"

struct header {
	const char *name, *value;
};

/* ---- the connection ---- */

static struct {
	struct header headers[HEADERS];
	size_t count;
	bool certified;
} request;

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			      MHD_KeyValueIterator iterator, void *context)
{
	size_t i = 0;

	(void)connection;
	while (i < request.count && iterator(context, kind, request.headers[i].name,
					     request.headers[i].value) == MHD_YES)
		i++;
	return (int)i;
}

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
					const char *name)
{
	(void)connection;
	(void)kind;
	for (size_t i = 0; i < request.count; i++)
		if (!strcasecmp(request.headers[i].name, name))
			return request.headers[i].value;
	return NULL;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
							enum MHD_ConnectionInfoType what, ...)
{
	static const union MHD_ConnectionInfo info;

	(void)connection;
	(void)what;
	return &info;
}

int gnutls_certificate_verify_peers(gnutls_session_t session, gnutls_typed_vdata_st *data,
				    unsigned int elements, unsigned int *ret_status)
{
	(void)session;
	require(elements == 1 && data->type == GNUTLS_DT_KEY_PURPOSE_OID);
	*ret_status = request.certified ? 0 : GNUTLS_CERT_INVALID;
	return 0;
}

const gnutls_datum_t *gnutls_certificate_get_peers(gnutls_session_t session,
						   unsigned int *ret_count)
{
	static const gnutls_datum_t chain[1];

	(void)session;
	*ret_count = 1;
	return chain;
}

int gnutls_x509_crt_init(gnutls_x509_crt_t *ret_certificate)
{
	*ret_certificate = NULL;
	return 0;
}

void gnutls_x509_crt_deinit(gnutls_x509_crt_t certificate)
{
	(void)certificate;
}

int gnutls_x509_crt_import(gnutls_x509_crt_t certificate, const gnutls_datum_t *data,
			   gnutls_x509_crt_fmt_t format)
{
	(void)certificate;
	(void)data;
	(void)format;
	return 0;
}

int gnutls_x509_crt_get_ca_status(gnutls_x509_crt_t certificate, unsigned int *ret_critical)
{
	(void)certificate;
	(void)ret_critical;
	return 0;
}

/* ---- invariants of admitted requests ---- */

static size_t count_of(const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < request.count; i++)
		count += !strcasecmp(request.headers[i].name, name);
	return count;
}

static size_t length_of(const char *value)
{
	size_t length = strlen(value);

	while (length && strchr(" \t", value[length - 1]))
		length--;
	return length;
}

static void check_host(const struct sink_http_access *access, const char *host)
{
	size_t length = length_of(host), colon = strcspn(host, ":");
	size_t name = colon < length ? colon : length;

	require(count_of("Host") == 1);
	if (access->host_count && name == strlen(NAME) && !strncasecmp(host, NAME, name))
		return;
	require(!strncasecmp(host, "localhost", strlen("localhost")) ||
		strspn(host, "0123456789abcdefABCDEF.:[]") >= length);
}

static void check_origin(const struct sink_http_access *access, const char *host)
{
	const char *origin = MHD_lookup_connection_value(NULL, MHD_HEADER_KIND, "Origin");
	const char *scheme = access->tls_key ? "https://" : "http://";

	if (!origin)
		return;
	require(count_of("Origin") == 1 && !strncmp(origin, scheme, strlen(scheme)));
	origin += strlen(scheme);
	require(length_of(origin) == length_of(host) &&
		!strncasecmp(origin, host, length_of(host)));
}

static void check_bearer(const struct sink_http_access *access, const char *method)
{
	const char *given = MHD_lookup_connection_value(NULL, MHD_HEADER_KIND, "Authorization");
	bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");

	if (!access->token && !access->read_token && (!access->own_token || reads))
		return;
	require(given && !strncasecmp(given, "Bearer ", 7));
	if (access->own_token ? !strcmp(given + 7, OWN_TOKEN)
			      : access->token && !strcmp(given + 7, access->token))
		return;
	require(reads && access->read_token && !strcmp(given + 7, access->read_token));
}

static void check_refusal(struct http_reply *reply)
{
	json_t *json = reply->body ? json_loads(reply->body, 0, NULL) : NULL;

	require(reply->status >= 400 && reply->status < 500);
	require(json_is_string(json_object_get(json, "error")));
	json_decref(json);
	free(reply->body);
}

static void fill_access(uint8_t bits, struct sink_http_access *access)
{
	access->token = bits & 1 ? TOKEN : NULL;
	access->read_token = bits & 2 ? READ_TOKEN : NULL;
	access->own_token = !(bits & 3) && bits & 4;
	access->tls_key = bits & 8 ? "key" : NULL;
	access->tls_client_ca = bits & 16 ? "authority" : NULL;
	access->hosts[0] = NAME;
	access->host_count = !!(bits & 32);
	request.certified = bits & 64;
}

/* Read "METHOD\nName: value\n…" into the request; return the method. */
static const char *read_head(char *text)
{
	const char *method = strsep(&text, "\n");

	request.count = 0;
	while (text && request.count < HEADERS) {
		char *value = strsep(&text, "\n"), *name = strsep(&value, ":");

		if (value)
			request.headers[request.count++] =
				(struct header){name, value + strspn(value, " ")};
	}
	return method;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;
	struct sink_http_access access = {0};
	struct sockaddr_storage listened;
	struct http_reply reply = {0};
	struct http_rate rates[HTTP_CALLERS] = {{0}};
	const char *method, *host;

	if (!text)
		return 0;
	require(!http_address_parse("[2001:db8::1]:9180", &listened));
	fill_access(data[0], &access);
	method = read_head(text);
	if (!http_guard_admits(&access, OWN_TOKEN, rates, NULL, -1, &listened, method,
			       HTTP_PROBE_NONE, &reply)) {
		check_refusal(&reply);
		return 0;
	}
	require(!reply.body);
	require(!access.tls_client_ca || request.certified);
	host = MHD_lookup_connection_value(NULL, MHD_HEADER_KIND, "Host");
	require(host != NULL);
	check_host(&access, host);
	check_origin(&access, host);
	check_bearer(&access, method);
	return 0;
}
