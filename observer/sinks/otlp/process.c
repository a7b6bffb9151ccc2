// SPDX-License-Identifier: MIT
/*
 * Sends over HTTP; see process.h. OTLP itself defines retries (OpenTelemetry protocol specification, "OTLP/HTTP
 * Response"): 429, 502, 503 and 504, after Retry-After or with growing pauses; other refusals are final. Counts are
 * cumulative, so a newer reading replaces an older one: only a point in time is then missing.
 */
#include "process.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "process/confine.h"
#include "process/passing.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"

#define CONNECT_S    5L
#define REQUEST_S    10L
#define FIRST_WAIT_S 1U
#define LAST_WAIT_S  30U
#define LONGEST_S    300U /* longest pause that a collector may request */
#define ANSWER_MAX   (64U << 10)

struct process {
	const struct otlp_target *target;
	int fd;
	CURL *curl;
	struct curl_slist *headers;
	char *reading;
	size_t length;
	bool closed; /* no reading will follow */
	bool failing;
	bool told_of_part;
	uint64_t missing; /* readings that were not sent since it began to fail */
	char reason[CURL_ERROR_SIZE + 64];
	char answer[ANSWER_MAX];
	size_t answer_length;
};

enum outcome {
	ACCEPTED,
	TRY_AGAIN,
	REFUSED,
};

/* ---- one request ---- */

/* A collector's answer fits into ANSWER_MAX. A longer one is not read, which ends the connection. */
static size_t take_answer(char *data, size_t size, size_t count, void *user)
{
	struct process *p = user;
	size_t room = sizeof(p->answer) - 1 - p->answer_length, length = size * count;

	if (length > room)
		return CURL_WRITEFUNC_ERROR;
	memcpy(p->answer + p->answer_length, data, length);
	p->answer_length += length;
	return length;
}

/* Warn if a part of the reading was rejected. Sending it again would change nothing. */
static void judge_answer(struct process *p)
{
	json_t *answer = json_loads(p->answer, JSON_REJECT_DUPLICATES, NULL);
	json_t *part = json_object_get(answer, "partialSuccess");
	json_t *rejected = json_object_get(part, "rejectedDataPoints");
	const char *text = json_string_value(rejected);
	long long count = text ? strtoll(text, NULL, 10) : json_integer_value(rejected);
	const char *why = json_string_value(json_object_get(part, "errorMessage"));

	if (count > 0 && !p->told_of_part)
		log_warn("--otlp: the collector took all but %lld points: %s", count,
			 why && *why ? why : "it does not say why");
	p->told_of_part = count > 0;
	json_decref(answer);
}

static enum outcome post(struct process *p, unsigned int *ret_wait_s)
{
	char error[CURL_ERROR_SIZE] = "";
	curl_off_t wait_s = 0;
	long status = 0;
	CURLcode code;

	p->answer_length = 0;
	curl_easy_setopt(p->curl, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDS, p->reading);
	curl_easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE, (long)p->length);
	code = curl_easy_perform(p->curl);
	curl_easy_setopt(p->curl, CURLOPT_ERRORBUFFER, NULL);
	if (code == CURLE_WRITE_ERROR) {
		snprintf(p->reason, sizeof(p->reason),
			 "the collector's answer is longer than %u KiB", ANSWER_MAX >> 10);
		return TRY_AGAIN;
	}
	if (code != CURLE_OK) {
		snprintf(p->reason, sizeof(p->reason), "%s",
			 *error ? error : curl_easy_strerror(code));
		return TRY_AGAIN;
	}
	p->answer[p->answer_length] = 0;
	curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &wait_s);
	*ret_wait_s = wait_s > LONGEST_S ? LONGEST_S : (unsigned int)(wait_s > 0 ? wait_s : 0);
	if (status >= 200 && status < 300)
		return ACCEPTED;
	snprintf(p->reason, sizeof(p->reason), "the collector answers %ld", status);
	return status == 429 || status == 502 || status == 503 || status == 504 ? TRY_AGAIN
										: REFUSED;
}

/* ---- readings ---- */

static bool next_reading(struct process *p)
{
	autoclose int fd = -1;
	int32_t word;
	int r = passing_receive(p->fd, &word, &fd);
	off_t length = r || fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	char *text = length > 0 ? malloc((size_t)length) : NULL;

	if (!text || pread(fd, text, (size_t)length, 0) != length) {
		free(text);
		p->closed = true;
		return false;
	}
	free(p->reading);
	p->reading = text;
	p->length = (size_t)length;
	return true;
}

/* Return at least half of the pause, so that many observers do not return together. */
static uint64_t jitter_ns(unsigned int seconds)
{
	uint64_t half = seconds * NSEC_PER_SEC / 2;
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		return 2 * half;
	return half + (uint64_t)((double)half * random / UINT32_MAX);
}

/* Wait. Meanwhile newer readings replace the waiting one. */
static void wait_for(struct process *p, uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns, now;
	struct pollfd readable = {.fd = p->fd, .events = POLLIN};

	while (!p->closed && (now = clock_now_ns()) < end) {
		int ms = (int)((end - now) / 1000000) + 1;

		if (poll(&readable, 1, ms) > 0 && next_reading(p))
			p->missing++;
	}
}

/* ---- the whole ---- */

/* Send a reading until it is accepted. After the last reading there is only one attempt. */
static void send_reading(struct process *p)
{
	for (unsigned int wait_s = FIRST_WAIT_S;; wait_s *= 2) {
		unsigned int asked_s = 0;
		enum outcome outcome = post(p, &asked_s);
		bool last = outcome == REFUSED || p->closed;

		if (outcome == ACCEPTED)
			break;
		if (!p->failing)
			log_warn("--otlp: %s: %s%s", p->target->url, p->reason,
				 last ? ": not sent again" : ", trying again");
		p->failing = true;
		if (last) {
			p->missing++;
			return;
		}
		if (wait_s > LAST_WAIT_S)
			wait_s = LAST_WAIT_S;
		wait_for(p, asked_s ? asked_s * NSEC_PER_SEC : jitter_ns(wait_s));
	}
	judge_answer(p);
	if (p->failing)
		log_warn("--otlp: %s takes readings again; %llu are missing", p->target->url,
			 (unsigned long long)p->missing);
	p->failing = false;
	p->missing = 0;
}

static int set_headers(struct process *p)
{
	p->headers = curl_slist_append(NULL, "Content-Type: application/json");
	for (size_t i = 0; p->headers && i < p->target->header_count; i++) {
		struct curl_slist *longer = curl_slist_append(p->headers, p->target->headers[i]);

		if (!longer)
			return -ENOMEM;
		p->headers = longer;
	}
	return p->headers ? 0 : -ENOMEM;
}

static int open_curl(struct process *p)
{
	p->curl = curl_easy_init();
	if (!p->curl)
		return -ENOSYS;
	curl_easy_setopt(p->curl, CURLOPT_URL, p->target->url);
	curl_easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(p->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(p->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(p->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(p->curl, CURLOPT_TIMEOUT, REQUEST_S);
	curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(p->curl, CURLOPT_WRITEDATA, p);
	if (p->target->ca) {
		struct curl_blob ca = {(void *)p->target->ca, strlen(p->target->ca),
				       CURL_BLOB_COPY};

		curl_easy_setopt(p->curl, CURLOPT_CAINFO_BLOB, &ca);
	}
	if (set_headers(p))
		return -ENOMEM;
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
	return 0;
}

/*
 * Prepare the sending process. A terminal's Ctrl-C is for the observation, which then closes @fd.
 * The endpoint's secrets have no use here. A change of the user clears the parent-death signal, so
 * that is set last.
 */
static int settle(const struct otlp_target *target)
{
	int r;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (size_t i = 0; i < OTLP_SECRETS; i++) {
		if (target->secrets[i])
			explicit_bzero((char *)target->secrets[i], strlen(target->secrets[i]));
	}
	r = confine_all();
	return !r && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : r;
}

_Noreturn void otlp_process(const struct otlp_target *target, int fd)
{
	struct process p = {.target = target, .fd = fd};
	int32_t word = open_curl(&p);

	if (!word)
		word = settle(target);
	if (passing_send(fd, word, -1, 0) || word)
		_exit(EXIT_FAILURE);
	while (next_reading(&p))
		send_reading(&p);
	_exit(EXIT_SUCCESS);
}
