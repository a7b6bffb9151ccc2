// SPDX-License-Identifier: MIT
/* Waits for a time or a flag, in short steps that notice Ctrl-C. */
#include "start.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define STEP_NS	     (5 * NSEC_PER_MSEC)
#define URL_STEPS    20 /* steps between requests */
#define URL_LIMIT_MS 2000L

/* Take ".25" at *@text, a fraction of a second. */
static uint64_t take_fraction(const char **text)
{
	uint64_t ns = 0, digit = NSEC_PER_SEC / 10;

	if (**text != '.' || !isdigit((unsigned char)(*text)[1]))
		return 0;
	for ((*text)++; isdigit((unsigned char)**text); (*text)++, digit /= 10)
		ns += digit * (uint64_t)(**text - '0');
	return ns;
}

static int parse_epoch(const char *text, uint64_t *ret_ns)
{
	char *end;
	const char *rest;
	uint64_t seconds, fraction;

	errno = 0;
	seconds = strtoull(text, &end, 10);
	rest = end;
	fraction = take_fraction(&rest);
	if (errno || *rest || seconds > (uint64_t)INT64_MAX / NSEC_PER_SEC - 1)
		return -EINVAL;
	*ret_ns = seconds * NSEC_PER_SEC + fraction;
	return 0;
}

/* Parse "Z", "+01:00", "-0530" or "": seconds east of UTC. */
static int parse_zone(const char *text, bool *ret_local, int *ret_east_s)
{
	unsigned int hours, minutes;
	int length = 0;

	*ret_local = !*text;
	*ret_east_s = 0;
	if (!*text || !strcmp(text, "Z") || !strcmp(text, "z"))
		return 0;
	if ((*text != '+' && *text != '-') ||
	    (sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &length) != 2 &&
	     sscanf(text + 1, "%2u%2u%n", &hours, &minutes, &length) != 2) ||
	    text[1 + length] || hours > 14 || minutes > 59)
		return -EINVAL;
	*ret_east_s = (int)(hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
	return 0;
}

/* mktime() and timegm() turn 31 February into 3 March: refuse that. */
static bool is_normal(const struct tm *tm, time_t time, bool local)
{
	struct tm again;

	if (local)
		localtime_r(&time, &again);
	else
		gmtime_r(&time, &again);
	return again.tm_mday == tm->tm_mday && again.tm_mon == tm->tm_mon &&
	       again.tm_year == tm->tm_year;
}

static int parse_iso(const char *text, uint64_t *ret_ns)
{
	struct tm tm = {.tm_isdst = -1}, given;
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M", &tm);
	uint64_t fraction;
	bool local;
	int east_s;
	time_t time;

	if (!rest)
		rest = strptime(text, "%Y-%m-%d %H:%M", &tm);
	if (rest && *rest == ':')
		rest = strptime(rest, ":%S", &tm);
	if (!rest)
		return -EINVAL;
	fraction = take_fraction(&rest);
	if (parse_zone(rest, &local, &east_s))
		return -EINVAL;
	given = tm;
	time = local ? mktime(&tm) : timegm(&tm);
	if (time < 0 || !is_normal(&given, time, local))
		return -EINVAL;
	*ret_ns = (uint64_t)(time - east_s) * NSEC_PER_SEC + fraction;
	return 0;
}

int start_parse_time(const char *text, uint64_t *ret_ns)
{
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	return parse_epoch(text, ret_ns) && parse_iso(text, ret_ns) ? -EINVAL : 0;
}

static bool is_url(const char *flag)
{
	return !strncmp(flag, "http://", 7) || !strncmp(flag, "https://", 8);
}

static int parse_fd(const char *flag, uint64_t *ret_fd)
{
	if (strncmp(flag, "fd:", 3))
		return -ENOENT;
	return units_parse_u64(flag + 3, 0, 1 << 20, ret_fd) ? -EINVAL : 0;
}

static bool has_scheme(const char *flag)
{
	const char *end = flag;

	while (isalnum((unsigned char)*end) || (end > flag && *end && strchr("+-.", *end)))
		end++;
	return end > flag && !strncmp(end, "://", 3);
}

int start_check_flag(const char *flag, char **ret_error)
{
	uint64_t fd;
	int err = parse_fd(flag, &fd);

	if (err == -EINVAL)
		return refuse(ret_error, "--wait-for: '%s' is not a descriptor; write it like fd:3",
			      flag);
	if (!err && fcntl((int)fd, F_GETFD) < 0)
		return refuse(ret_error,
			      "--wait-for: '%s' is not open; the shell opens it, e.g. "
			      "with 3<FIFO",
			      flag);
	if (has_scheme(flag) && !is_url(flag))
		return refuse(ret_error,
			      "--wait-for: '%s' is no URL that can be asked; allowed are http:// "
			      "and https://, and for a file of such a name ./NAME",
			      flag);
	if (!*flag)
		return refuse(ret_error, "--wait-for: '' is nothing to wait for; give a file, "
					 "fd:N or a URL");
	return 0;
}

/* ---- flags: 1 up, 0 not yet, -errno ---- */

static int is_file_up(const char *path, char **ret_error)
{
	struct stat status;

	if (!stat(path, &status))
		return 1;
	if (errno == ENOENT)
		return 0;
	return refuse(ret_error, "--wait-for: cannot look at '%s': %s", path, strerror(errno));
}

static int is_fd_up(int fd, char **ret_error)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (poll(&poll_fd, 1, 0) < 0 || poll_fd.revents & POLLNVAL)
		return refuse(ret_error, "--wait-for: cannot read fd:%d", fd);
	return poll_fd.revents != 0;
}

static size_t drop_body(const char *data, size_t size, size_t count, void *user)
{
	(void)data;
	(void)user;
	return size * count;
}

/* An error means not yet: the server may still be starting. */
static int is_url_up(const char *url)
{
	CURL *curl = curl_easy_init();
	long status = 0;

	if (!curl)
		return -ELIBACC; /* see lib/base/curl_lazy.c */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, URL_LIMIT_MS);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_body);
	if (!curl_easy_perform(curl))
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	return status >= 200 && status < 300;
}

static int is_up(const char *flag, unsigned int step, char **ret_error)
{
	uint64_t fd;

	if (!parse_fd(flag, &fd))
		return is_fd_up((int)fd, ret_error);
	if (is_url(flag))
		return step % URL_STEPS == 0 ? is_url_up(flag) : 0;
	return is_file_up(flag, ret_error);
}

static void rest(uint64_t ns)
{
	const struct timespec pause = {.tv_nsec = (long)(ns < STEP_NS ? ns : STEP_NS)};

	nanosleep(&pause, NULL);
}

int start_await_flag(const struct start_spec *spec, struct patience patience, char **ret_error)
{
	if (!spec->flag)
		return 0;
	for (unsigned int step = 0;; step++) {
		int up = is_up(spec->flag, step, ret_error);

		if (up)
			return up < 0 ? up : 0;
		if (patience.is_over(patience.user))
			return -ECANCELED;
		rest(STEP_NS);
	}
}

/* Ask the wall clock again in each step, as it may be set meanwhile. */
int start_await_time(const struct start_spec *spec, uint64_t early_ns, struct patience patience,
		     uint64_t *ret_ns, char **ret_error)
{
	uint64_t wall_ns = clock_wall_ns(), due_ns, now_ns;

	if (!spec->at_ns)
		return 0;
	if (wall_ns > spec->at_ns)
		return refuse(ret_error,
			      "--start-at: that time passed %s ago, before the load "
			      "could begin",
			      as_setting((double)(wall_ns - spec->at_ns)));
	while (wall_ns + early_ns < spec->at_ns) {
		if (patience.is_over(patience.user))
			return -ECANCELED;
		rest(spec->at_ns - early_ns - wall_ns);
		wall_ns = clock_wall_ns();
	}
	due_ns = spec->at_ns - clock_wall_ahead_ns();
	now_ns = clock_now_ns();
	*ret_ns = due_ns > now_ns ? due_ns : now_ns;
	return 0;
}
