// SPDX-License-Identifier: MIT
/*
 * The observer over HTTP, by libcurl, from the main thread while no load runs:
 * POST /v1/phases → 201 {"phase": N}; POST /v1/phases/N/end → 200 and a run document.
 */
#include "observer.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/refuse.h"

#define CONNECT_TIMEOUT_S 3L
#define TOTAL_TIMEOUT_S	  30L

struct observer {
	CURL *curl;
	char *base; /* without a trailing slash */
	struct observer_patience patience;
	int64_t phase;
	bool has_token;
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

static void set_options(struct observer *observer)
{
	curl_easy_setopt(observer->curl, CURLOPT_ERRORBUFFER, observer->reason);
	curl_easy_setopt(observer->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(observer->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(observer->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(observer->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
	curl_easy_setopt(observer->curl, CURLOPT_TIMEOUT, TOTAL_TIMEOUT_S);
	curl_easy_setopt(observer->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(observer->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(observer->curl, CURLOPT_XFERINFODATA, observer);
	curl_easy_setopt(observer->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(observer->curl, CURLOPT_POSTFIELDS, "");
	curl_easy_setopt(observer->curl, CURLOPT_POSTFIELDSIZE, 0L);
}

/* The token goes to this observer alone: nothing redirects, see set_options(). */
static void set_access(struct observer *observer, const struct observer_access *access)
{
	if (access->ca_path)
		curl_easy_setopt(observer->curl, CURLOPT_CAINFO, access->ca_path);
	observer->has_token = access->token;
	if (!access->token)
		return;
	curl_easy_setopt(observer->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	curl_easy_setopt(observer->curl, CURLOPT_XOAUTH2_BEARER, access->token);
}

int observer_new(const struct observer_access *access, struct observer_patience patience,
		 struct observer **ret_observer)
{
	CLEANUP(cleanup_observer_free) struct observer *observer = calloc(1, sizeof(*observer));
	size_t length = strlen(access->url);

	if (!observer)
		return -ENOMEM;
	while (length && access->url[length - 1] == '/')
		length--;
	observer->base = strndup(access->url, length);
	if (!observer->base)
		return -ENOMEM;
	observer->curl = curl_easy_init();
	if (!observer->curl)
		return -ELIBACC; /* see lib/curl_lazy.c */
	observer->patience = patience;
	set_options(observer);
	set_access(observer, access);
	*ret_observer = TAKE_PTR(observer);
	return 0;
}

void observer_free(struct observer *observer)
{
	if (!observer)
		return;
	curl_easy_cleanup(observer->curl);
	free(observer->base);
	free(observer);
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
	curl_easy_setopt(observer->curl, CURLOPT_WRITEDATA, body);
	code = curl_easy_perform(observer->curl);
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return refuse(ret_error, "interrupted while waiting for %s", url);
	if (code)
		return refuse(ret_error, "%s: %s", url,
			      observer->reason[0] ? observer->reason : curl_easy_strerror(code));
	curl_easy_getinfo(observer->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 401)
		return refuse(
			ret_error,
			"%s: the observer wants %s bearer token: --observer-token-file=FILE, or "
			"SOJOURN_OBSERVER_TOKEN in the environment",
			url, observer->has_token ? "another" : "a");
	if (status != wanted_status)
		return refuse(ret_error, "%s answered %ld instead of %ld: is it an observer?", url,
			      status, wanted_status);
	return 0;
}

/* The answer's text in @ret_text, to be freed by the caller, also on failure. */
static int post(struct observer *observer, const char *path, long wanted_status, char **ret_text,
		size_t *ret_length, char **ret_error)
{
	FILE *body = open_memstream(ret_text, ret_length);
	int err;

	if (!body)
		return -ENOMEM;
	err = perform(observer, path, body, wanted_status, ret_error);
	if (fclose(body) && !err)
		return -ENOMEM;
	return err;
}

int observer_begin(struct observer *observer, char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	json_t *answer, *phase;
	int err = post(observer, "/v1/phases", 201, &text, &length, ret_error);

	if (err)
		return err;
	answer = json_loadb(text, length, 0, NULL);
	phase = json_object_get(answer, "phase");
	if (json_is_integer(phase))
		observer->phase = json_integer_value(phase);
	else
		err = refuse(ret_error, "%s/v1/phases answered without a phase: is it an observer?",
			     observer->base);
	json_decref(answer);
	return err;
}

int observer_end(struct observer *observer, struct run **ret_run, char **ret_error)
{
	autofree char *text = NULL;
	autofree char *reason = NULL;
	size_t length = 0;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/v1/phases/%" PRId64 "/end", observer->phase);
	err = post(observer, path, 200, &text, &length, ret_error);
	if (err)
		return err;
	err = run_from_json(text, length, ret_run, &reason);
	if (err)
		return refuse(ret_error, "%s%s sent no run document: %s", observer->base, path,
			      reason ? reason : strerror(-err));
	return 0;
}
