// SPDX-License-Identifier: MIT
/* The summary: every counter by name, summed over the processes. */
#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"

static const char *const counter_names[COUNTER_COUNT] = {
	[COUNTER_ACCEPTED] = "accepted",
	[COUNTER_EXCHANGES] = "exchanges",
	[COUNTER_INCOMPLETE] = "incomplete",
	[COUNTER_BAD_REQUESTS] = "bad_requests",
	[COUNTER_UNANSWERED] = "unanswered",
	[COUNTER_BYTES_IN] = "bytes_in",
	[COUNTER_BYTES_OUT] = "bytes_out",
	[COUNTER_CLOSED_BY_SERVER] = "closed_by_server",
	[COUNTER_CLOSED_BY_CLIENT] = "closed_by_client",
	[COUNTER_RESET_BY_SERVER] = "reset_by_server",
	[COUNTER_RESET_BY_CLIENT] = "reset_by_client",
	[COUNTER_CLOSED_AT_EXIT] = "closed_at_exit",
	[COUNTER_LEAKED] = "leaked",
	[COUNTER_ACCEPT_ERRORS] = "accept_errors",
	[COUNTER_TRUTH_DROPPED] = "truth_dropped",
};

static unsigned long long counter_sum(const struct summary *summary, enum counter counter)
{
	unsigned long long sum = 0;

	for (unsigned int i = 0; i < summary->workers; i++)
		sum += atomic_load_explicit(&summary->counters[i].values[counter],
					    memory_order_relaxed);
	return sum;
}

static void print_summary(const struct summary *summary, FILE *file)
{
	unsigned long long closed = 0;

	for (int i = COUNTER_CLOSED_BY_SERVER; i <= COUNTER_CLOSED_AT_EXIT; i++)
		closed += counter_sum(summary, i);
	fprintf(file, "{\n  \"protocol\": \"%s\",\n  \"model\": \"%s\",\n  \"pid\": %d,\n",
		summary->protocol, summary->model, summary->pid);
	for (int i = 0; i < COUNTER_COUNT; i++)
		fprintf(file, "  \"%s\": %llu,\n", counter_names[i], counter_sum(summary, i));
	fprintf(file, "  \"closed\": %llu\n}\n", closed);
}

/* A full disk may first show in fclose(). */
static int write_to(const struct summary *summary, const char *path)
{
	FILE *file = fopen(path, "we");
	int failed;

	if (!file)
		return -errno;
	print_summary(summary, file);
	failed = ferror(file);
	if (fclose(file))
		return -errno;
	return failed ? -EIO : 0;
}

/* Return whether @path may be replaced by rename(), unlike /dev/null. */
static int is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode);
}

int counters_write_summary(const struct summary *summary, const char *path)
{
	autofree char *partial = NULL;
	int err;

	if (!is_replaceable(path))
		return write_to(summary, path);
	if (asprintf(&partial, "%s.partial", path) < 0) {
		partial = NULL;
		return -ENOMEM;
	}
	err = write_to(summary, partial);
	if (!err && rename(partial, path))
		err = -errno;
	if (err)
		unlink(partial);
	return err;
}
