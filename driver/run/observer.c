// SPDX-License-Identifier: MIT
/*
 * The observer over HTTP, by libcurl. The main thread calls while no load runs: POST /v1/phases →
 * 201 {"phase": N, "lease_s": S}, and POST /v1/phases/N/end → 200 and a run document. During the
 * phase a sleeping thread sends POST /v1/phases/N/renew, or the observer would take the driver for
 * dead.
 */
#include "observer.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/url.h"
#include "sojourn/clock.h"
#include "sojourn/own_token.h"
#include "sojourn/refuse.h"

#define CONNECT_TIMEOUT_S 3L
#define TOTAL_TIMEOUT_S	  30L
/* The observer forgets a killed driver after this long. */
#define LEASE_S	    "60"
#define LEASE_MAX_S 86400 /* maximum lease of an observer */
/* Larger than any run document accepted. */
#define BODY_MAX	(64UL << 20)
#define RENEW_TIMEOUT_S 10L
/* An observer that was started beside the driver answers by then, on a busy host too. */
#define START_WAIT_NS (5 * NSEC_PER_SEC)
#define START_STEP_NS (50 * NSEC_PER_MSEC)

struct observer {
	CURL *curl;
	char *base; /* without a trailing slash */
	struct patience patience;
	uint16_t port; /* of the target */
	int64_t phase;
	bool others_token; /* the endpoint belongs to another user */
	bool own_token;	   /* none was given: the observer's own one is looked for */
	bool unreached;	   /* the last request found nobody who listens */
	bool refused;	   /* the last answer was 401 */
	char *token;
	FILE *body;  /* of the answer being read */
	size_t left; /* bytes that the answer may still have */
	const char *ca_path;
	pthread_t renewer;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t lease_s; /* 0: no thread renews */
	bool over;	  /* stop renewing */
	char reason[CURL_ERROR_SIZE];
};

static int on_progress(void *user, curl_off_t total_in, curl_off_t in, curl_off_t total_out,
		       curl_off_t out)
{
	struct observer *observer = user;

	(void)total_in;
	(void)in;
	(void)total_out;
	(void)out;
	return observer->patience.is_over(observer->patience.user);
}

/* Follow no redirects: the token is for this observer alone. libcurl copies it. */
static void set_options(const struct observer *observer, CURL *curl, long timeout_s)
{
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, timeout_s);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
	if (observer->ca_path)
		curl_easy_setopt(curl, CURLOPT_CAINFO, observer->ca_path);
	if (!observer->token)
		return;
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, observer->token);
}

/* Limit the answer, as an endless one would exhaust memory. */
static size_t take_body(char *text, size_t size, size_t count, void *user)
{
	struct observer *observer = user;
	size_t length = size * count;

	if (length > observer->left)
		return 0;
	observer->left -= length;
	return fwrite(text, 1, length, observer->body);
}

static void set_patience(struct observer *observer)
{
	curl_easy_setopt(observer->curl, CURLOPT_ERRORBUFFER, observer->reason);
	curl_easy_setopt(observer->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(observer->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(observer->curl, CURLOPT_XFERINFODATA, observer);
	curl_easy_setopt(observer->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(observer->curl, CURLOPT_WRITEDATA, observer);
}

static bool is_loopback(const struct url *url)
{
	char host[64];
	struct in_addr in;

	if (url->host.length >= sizeof(host))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)url->host.length, url->host.text);
	if (url->is_ipv6)
		return !strcmp(host, "::1");
	return !strcmp(host, "localhost") ||
	       (inet_pton(AF_INET, host, &in) == 1 && ntohl(in.s_addr) >> 24 == 127);
}

/* Find the token that this user's observer on loopback has left for its drivers. */
static char *find_own_token(struct observer *observer)
{
	char *token = NULL;
	struct url url;

	/* The URL was checked with its option. */
	if (url_split(observer->base, &url) || !url.port.length || !is_loopback(&url))
		return NULL;
	observer->others_token =
		own_token_find((uint16_t)strtoul(url.port.text, NULL, 10), &token) == -EACCES;
	return token;
}

static int set_access(struct observer *observer, const struct observer_access *access)
{
	observer->ca_path = access->ca_path;
	observer->own_token = !access->token;
	observer->token = access->token ? strdup(access->token) : find_own_token(observer);
	return access->token && !observer->token ? -ENOMEM : 0;
}

/* ---- the lease ---- */

static size_t ignore(char *text, size_t size, size_t count, void *user)
{
	(void)text;
	(void)user;
	return size * count;
}

/* The run does not wait for an observer that hangs. */
static int ends_with_the_run(void *user, curl_off_t total_in, curl_off_t in, curl_off_t total_out,
			     curl_off_t out)
{
	struct observer *observer = user;
	bool over;

	(void)total_in;
	(void)in;
	(void)total_out;
	(void)out;
	pthread_mutex_lock(&observer->lock);
	over = observer->over;
	pthread_mutex_unlock(&observer->lock);
	return over;
}

/* Renew once. The next renewal may succeed; if all fail, the end of the phase reports it. */
static void renew(struct observer *observer)
{
	CURL *curl = curl_easy_init();
	autofree char *url = NULL;

	if (curl &&
	    asprintf(&url, "%s/v1/phases/%" PRId64 "/renew", observer->base, observer->phase) > 0) {
		set_options(observer, curl, RENEW_TIMEOUT_S);
		curl_easy_setopt(curl, CURLOPT_URL, url);
		curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ends_with_the_run);
		curl_easy_setopt(curl, CURLOPT_XFERINFODATA, observer);
		(void)curl_easy_perform(curl);
	}
	if (curl)
		curl_easy_cleanup(curl);
}

/* Renew three times per lease, as one may get lost. */
static void *keep_renewing(void *user)
{
	struct observer *observer = user;

	pthread_mutex_lock(&observer->lock);
	while (!observer->over) {
		uint64_t wait_ns = observer->lease_s * NSEC_PER_SEC / 3;
		struct timespec until;
		int r = 0;

		clock_gettime(CLOCK_MONOTONIC, &until);
		wait_ns += (uint64_t)until.tv_nsec;
		until.tv_sec += (time_t)(wait_ns / NSEC_PER_SEC);
		until.tv_nsec = (long)(wait_ns % NSEC_PER_SEC);
		while (!observer->over && !r)
			r = pthread_cond_clockwait(&observer->wake, &observer->lock,
						   CLOCK_MONOTONIC, &until);
		if (observer->over)
			break;
		pthread_mutex_unlock(&observer->lock);
		renew(observer);
		pthread_mutex_lock(&observer->lock);
	}
	pthread_mutex_unlock(&observer->lock);
	return NULL;
}

/* Old observers have no leases. */
static int begin_renewing(struct observer *observer, uint64_t lease_s)
{
	int err;

	if (!lease_s)
		return 0;
	observer->over = false;
	observer->lease_s = lease_s;
	err = loop_thread(&observer->renewer, keep_renewing, observer);
	if (err)
		observer->lease_s = 0;
	return err;
}

static void end_renewing(struct observer *observer)
{
	if (!observer->lease_s)
		return;
	pthread_mutex_lock(&observer->lock);
	observer->over = true;
	pthread_cond_signal(&observer->wake);
	pthread_mutex_unlock(&observer->lock);
	pthread_join(observer->renewer, NULL);
	observer->lease_s = 0;
}

/* ---- the observer ---- */

int observer_new(const struct observer_access *access, const char *url, uint16_t port,
		 struct patience patience, struct observer **ret_observer)
{
	CLEANUP(cleanup_observer_free) struct observer *observer = calloc(1, sizeof(*observer));
	size_t length = strlen(url);
	int err;

	if (!observer)
		return -ENOMEM;
	pthread_mutex_init(&observer->lock, NULL);
	pthread_cond_init(&observer->wake, NULL);
	while (length && url[length - 1] == '/')
		length--;
	observer->base = strndup(url, length);
	if (!observer->base)
		return -ENOMEM;
	observer->curl = curl_easy_init();
	if (!observer->curl)
		return -ELIBACC; /* see lib/base/curl_lazy.c */
	observer->patience = patience;
	observer->port = port;
	err = set_access(observer, access);
	if (err)
		return err;
	set_options(observer, observer->curl, TOTAL_TIMEOUT_S);
	set_patience(observer);
	*ret_observer = TAKE_PTR(observer);
	return 0;
}

void observer_free(struct observer *observer)
{
	if (!observer)
		return;
	end_renewing(observer);
	pthread_cond_destroy(&observer->wake);
	pthread_mutex_destroy(&observer->lock);
	curl_easy_cleanup(observer->curl);
	free(observer->token);
	free(observer->base);
	free(observer);
}

const char *observer_url(const struct observer *observer)
{
	return observer->base;
}

/* Write the command to type on the observer's host, with a token and TLS beyond loopback. */
static int tell_command(const struct observer *observer, char **ret_text)
{
	char services[32] = "--all-listeners";
	const char *address = "", *access = "";
	struct url_part port;
	struct url url;
	bool tls;

	if (url_split(observer->base, &url))
		return -EINVAL;
	tls = !strcmp(url.scheme, "https");
	port = url.port.length ? url.port
	       : tls	       ? (struct url_part){"443", 3}
			       : (struct url_part){"80", 2};
	if (observer->port)
		snprintf(services, sizeof(services), "--port %u", observer->port);
	if (!is_loopback(&url))
		address = "0.0.0.0:";
	else if (url.is_ipv6)
		address = "[::1]:";
	if (tls)
		access = " --tls-cert FILE --tls-key FILE --token-file FILE";
	else if (!is_loopback(&url))
		access = " --open";
	return asprintf(ret_text, "sojourn observe %s --listen %s%.*s%s", services, address,
			(int)port.length, port.text, access);
}

/* Report libcurl's reason, and how to start an observer if nobody answers. */
static int refuse_transfer(const struct observer *observer, const char *url, CURLcode code,
			   char **ret_error)
{
	const char *why = observer->reason[0] ? observer->reason : curl_easy_strerror(code);
	autofree char *command = NULL;

	if (code != CURLE_COULDNT_CONNECT || tell_command(observer, &command) < 0)
		return refuse(ret_error, "%s: %s", url, why);
	return refuse(ret_error, "%s: %s; start an observer there: %s", url, why, command);
}

static int perform(struct observer *observer, const char *path, FILE *body, long wanted_status,
		   char **ret_error)
{
	autofree char *url = NULL;
	long status = 0;
	CURLcode code;

	if (asprintf(&url, "%s%s", observer->base, path) < 0)
		return -ENOMEM;
	observer->reason[0] = '\0';
	curl_easy_setopt(observer->curl, CURLOPT_URL, url);
	observer->body = body;
	observer->left = BODY_MAX;
	code = curl_easy_perform(observer->curl);
	observer->unreached = code == CURLE_COULDNT_CONNECT;
	observer->refused = false;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return refuse(ret_error, "interrupted while waiting for %s", url);
	if (code == CURLE_WRITE_ERROR)
		return refuse(ret_error, "%s answered more than 64 MiB: is it an observer?", url);
	if (code)
		return refuse_transfer(observer, url, code, ret_error);
	curl_easy_getinfo(observer->curl, CURLINFO_RESPONSE_CODE, &status);
	observer->refused = status == 401;
	if (observer->refused && observer->others_token)
		return refuse(ret_error,
			      "%s: the observer is another user's: run sojourn-drive as that user "
			      "or root, or "
			      "begin the observer with --token-file=FILE, or --open for all",
			      url);
	if (observer->refused)
		return refuse(
			ret_error,
			"%s: the observer wants %s bearer token: --observer-token-file=FILE, or "
			"SOJOURN_OBSERVER_TOKEN in the environment; one that listens on loopback "
			"without "
			"--token-file or --open is for its own user",
			url, observer->token ? "another" : "a");
	if (status != wanted_status)
		return refuse(ret_error, "%s answered %ld instead of %ld: is it an observer?", url,
			      status, wanted_status);
	return 0;
}

/* Return the answer's text in @ret_text, freed by the caller, also on failure. */
static int ask(struct observer *observer, CURLoption method, const char *path, long wanted_status,
	       char **ret_text, size_t *ret_length, char **ret_error)
{
	FILE *body = open_memstream(ret_text, ret_length);
	int err;

	if (!body)
		return -ENOMEM;
	curl_easy_setopt(observer->curl, method, 1L);
	err = perform(observer, path, body, wanted_status, ret_error);
	if (fclose(body) && !err)
		return -ENOMEM;
	return err;
}

static bool is_on_this_host(const struct observer *observer)
{
	struct url url;

	return !url_split(observer->base, &url) && is_loopback(&url);
}

static int post_begin(struct observer *observer, char **ret_text, size_t *ret_length,
		      char **ret_error)
{
	return ask(observer, CURLOPT_POST, "/v1/phases?lease=" LEASE_S, 201, ret_text, ret_length,
		   ret_error);
}

/*
 * Begin a phase. `sojourn observe … &` and the driver in the next line start in the same moment, and
 * the observer needs longer. So wait for one on this host. It listens before its token can be read.
 */
static int begin_phase(struct observer *observer, char **ret_text, size_t *ret_length,
		       char **ret_error)
{
	uint64_t until_ns = clock_now_ns() + START_WAIT_NS;
	int err = post_begin(observer, ret_text, ret_length, ret_error);
	bool starts = observer->unreached && is_on_this_host(observer);

	while (err && starts && (observer->unreached || observer->refused) &&
	       clock_now_ns() < until_ns && !observer->patience.is_over(observer->patience.user)) {
		clock_sleep_until(clock_now_ns() + START_STEP_NS);
		if (observer->own_token) {
			free(observer->token);
			observer->token = find_own_token(observer);
			set_options(observer, observer->curl, TOTAL_TIMEOUT_S);
		}
		free(TAKE_PTR(*ret_text));
		free(TAKE_PTR(*ret_error));
		err = post_begin(observer, ret_text, ret_length, ret_error);
	}
	return err;
}

int observer_begin(struct observer *observer, char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	json_t *answer, *phase, *lease;
	int err = begin_phase(observer, &text, &length, ret_error);

	if (err)
		return err;
	answer = json_loadb(text, length, 0, NULL);
	phase = json_object_get(answer, "phase");
	if (json_is_integer(phase))
		observer->phase = json_integer_value(phase);
	else
		err = refuse(ret_error, "%s/v1/phases answered without a phase: is it an observer?",
			     observer->base);
	lease = json_object_get(answer, "lease_s");
	if (!err && json_integer_value(lease) > 0 && json_integer_value(lease) <= LEASE_MAX_S)
		err = begin_renewing(observer, (uint64_t)json_integer_value(lease));
	json_decref(answer);
	return err;
}

int observer_end_text(struct observer *observer, char **ret_text, size_t *ret_length,
		      char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	char path[64];
	int err;

	end_renewing(observer);
	snprintf(path, sizeof(path), "/v1/phases/%" PRId64 "/end", observer->phase);
	err = ask(observer, CURLOPT_POST, path, 200, &text, &length, ret_error);
	if (err)
		return err;
	*ret_length = length;
	*ret_text = TAKE_PTR(text);
	return 0;
}

static int read_document(const struct observer *observer, const char *text, size_t length,
			 struct run **ret_run, char **ret_error)
{
	autofree char *reason = NULL;
	int err = run_from_json(text, length, ret_run, &reason);

	if (err)
		return refuse(ret_error, "%s sent no run document: %s", observer->base,
			      reason ? reason : strerror(-err));
	return 0;
}

int observer_end(struct observer *observer, struct run **ret_run, char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	int err = observer_end_text(observer, &text, &length, ret_error);

	return err ? err : read_document(observer, text, length, ret_run, ret_error);
}

int observer_services(struct observer *observer, struct run **ret_run, char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	int err = ask(observer, CURLOPT_HTTPGET, "/v1/services", 200, &text, &length, ret_error);

	return err ? err : read_document(observer, text, length, ret_run, ret_error);
}

void observer_drop(struct observer *observer)
{
	autofree char *text = NULL, *error = NULL;
	size_t length;

	if (observer)
		(void)observer_end_text(observer, &text, &length, &error);
}
