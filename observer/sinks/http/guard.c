// SPDX-License-Identifier: MIT
/*
 * Checks of a request before any route sees it: certificate, Host and Origin, bearer token; then the caller's rate.
 * Each kind of caller has its own limit, so that refused callers take nothing from the others.
 */
#include "guard.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

struct host_check {
	const struct sink_http_access *access;
	const struct sockaddr_storage *listened;
	struct sockaddr_storage local;
	unsigned int hosts;
	unsigned int origins;
	unsigned int lengths;
	const char *host;
	const char *origin;
};

/*
 * Return whether the name was given for this endpoint, with any port (such as a proxy's) or none.
 */
static bool is_given_host(const struct sink_http_access *access, const char *host)
{
	size_t length = strcspn(host, ":");
	uint64_t port;

	if (host[length] && units_parse_u64(host + length + 1, 1, UINT16_MAX, &port))
		return false;
	for (size_t i = 0; i < access->host_count; i++) {
		if (strlen(access->hosts[i]) == length &&
		    !strncasecmp(access->hosts[i], host, length))
			return true;
	}
	return false;
}

/* libmicrohttpd keeps blanks after a header's value. */
static size_t value_length(const char *value)
{
	size_t length = strlen(value);

	while (length && strchr(" \t", value[length - 1]))
		length--;
	return length;
}

static bool is_own_host(const struct host_check *check, const char *value)
{
	char host[256];
	size_t length = value_length(value);

	if (length >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)length, value);
	return http_address_is_host(host, check->listened, &check->local) ||
	       is_given_host(check->access, host);
}

/* The page is this endpoint's own if it came from where this request goes (RFC 6454, 5): by scheme, name and port. */
static bool is_own_origin(const struct host_check *check, const char *origin)
{
	const char *scheme = check->access->tls_key ? "https://" : "http://";
	size_t length = value_length(check->host);

	if (strncmp(origin, scheme, strlen(scheme)))
		return false;
	origin += strlen(scheme);
	return value_length(origin) == length && !strncasecmp(origin, check->host, length);
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct host_check *check = context;

	(void)kind;
	if (!strcasecmp(name, MHD_HTTP_HEADER_HOST)) {
		check->hosts++;
		check->host = value;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_ORIGIN)) {
		check->origins++;
		check->origin = value;
	} else if (!strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
		check->lengths++;
	}
	return MHD_YES;
}

/*
 * A web page must not reach the endpoint through its visitor's browser. A name that its DNS points here shows in
 * Host. A form that posts here shows the page's Origin.
 */
static bool check_sender(const struct sink_http_access *access, struct MHD_Connection *connection,
			 int fd, const struct sockaddr_storage *listened, struct http_reply *reply)
{
	struct host_check check = {.access = access, .listened = listened};
	socklen_t length = sizeof(check.local);

	if (getsockname(fd, (struct sockaddr *)&check.local, &length))
		check.local = *listened;
	MHD_get_connection_values(connection, MHD_HEADER_KIND, check_header, &check);
	if (check.hosts > 1)
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "more than one Host header");
	else if (check.lengths > 1)
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST,
				 "more than one Content-Length header");
	else if (!check.host || !is_own_host(&check, check.host))
		http_reply_error(reply, MHD_HTTP_MISDIRECTED_REQUEST,
				 "the Host header must name the address listened on");
	else if (check.origins > 1 ||
		 (check.origins && (!check.origin || !is_own_origin(&check, check.origin))))
		http_reply_error(reply, MHD_HTTP_FORBIDDEN, "not for web pages of another origin");
	else
		return true;
	return false;
}

/* Take equally long for every wrong token of the right length. */
static bool is_token(const char *given, const char *token)
{
	size_t length = token ? strlen(token) : 0;

	return length && strlen(given) == length && !gnutls_memcmp(given, token, length);
}

static bool is_reading(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

/* RFC 6750, 2.1. */
static enum http_caller check_token(const struct sink_http_access *access, const char *own_token,
				    struct MHD_Connection *connection, const char *method,
				    struct http_reply *reply)
{
	const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							MHD_HTTP_HEADER_AUTHORIZATION);
	bool bearer = given && !strncasecmp(given, "Bearer ", 7), reads = is_reading(method);

	if (!access->token && !access->read_token && (!access->own_token || reads))
		return access->tls_client_ca ? HTTP_CALLER_KNOWN : HTTP_CALLER_ANYBODY;
	if (bearer && is_token(given + 7, access->own_token ? own_token : access->token))
		return HTTP_CALLER_KNOWN;
	if (bearer && is_token(given + 7, access->read_token)) {
		if (reads)
			return HTTP_CALLER_KNOWN;
		http_reply_error(reply, MHD_HTTP_FORBIDDEN, "this token is for reading only");
		return HTTP_CALLER_REFUSED;
	}
	http_reply_error(reply, MHD_HTTP_UNAUTHORIZED, "a bearer token is needed");
	reply->header = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
	snprintf(reply->value, sizeof(reply->value), "Bearer realm=\"sojourn\"");
	return HTTP_CALLER_REFUSED;
}

/* An authority's own certificate is for signing others, whatever else it says. */
static bool is_authority(gnutls_session_t session)
{
	unsigned int count = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t certificate;
	int authority = 1;

	if (!count || gnutls_x509_crt_init(&certificate))
		return true;
	if (!gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER))
		authority = gnutls_x509_crt_get_ca_status(certificate, NULL);
	gnutls_x509_crt_deinit(certificate);
	return authority > 0;
}

/*
 * libmicrohttpd requests the client's certificate, which is checked here. One that names a purpose
 * must be for clients (RFC 5280, 4.2.1.12).
 */
static bool check_certificate(const struct sink_http_access *access,
			      struct MHD_Connection *connection, struct http_reply *reply)
{
	gnutls_typed_vdata_st client = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
					.data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
	const union MHD_ConnectionInfo *info;
	unsigned int status = ~0U;

	if (!access->tls_client_ca)
		return true;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (info && !gnutls_certificate_verify_peers(info->tls_session, &client, 1, &status) &&
	    !status && !is_authority(info->tls_session))
		return true;
	http_reply_error(reply, MHD_HTTP_FORBIDDEN,
			 "a client certificate is needed: of the authority, for clients, "
			 "and not an authority's own");
	return false;
}

static bool check_rate(struct http_rate *rate, struct http_reply *reply)
{
	uint64_t now = clock_now_ns(), cost;

	if (!rate->per_second)
		return true;
	cost = NSEC_PER_SEC / rate->per_second;
	rate->left_ns += rate->last_ns ? now - rate->last_ns : NSEC_PER_SEC;
	if (rate->left_ns > NSEC_PER_SEC)
		rate->left_ns = NSEC_PER_SEC;
	rate->last_ns = now;
	if (rate->left_ns >= cost) {
		rate->left_ns -= cost;
		return true;
	}
	free(reply->body); /* why it was refused, if it was */
	*reply = (struct http_reply){0};
	http_reply_error(reply, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests");
	reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
	snprintf(reply->value, sizeof(reply->value), "1");
	return false;
}

bool http_guard_admits(const struct sink_http_access *access, const char *own_token,
		       struct http_rate rates[HTTP_CALLERS], struct MHD_Connection *connection,
		       int fd, const struct sockaddr_storage *listened, const char *method,
		       enum http_probe probe, struct http_reply *reply)
{
	enum http_caller caller = HTTP_CALLER_REFUSED;

	if (check_certificate(access, connection, reply) &&
	    check_sender(access, connection, fd, listened, reply))
		caller = probe == HTTP_PROBE_LIVE && is_reading(method)
				 ? HTTP_CALLER_ANYBODY
				 : check_token(access, own_token, connection, method, reply);
	if (probe && caller != HTTP_CALLER_REFUSED)
		return true;
	return check_rate(&rates[caller], reply) && caller != HTTP_CALLER_REFUSED;
}
