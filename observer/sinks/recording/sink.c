// SPDX-License-Identifier: MIT
/* Readings to a file, so that a crash leaves all of them but the last; see sink.h. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "recording.h"
#include "sojourn/clock.h"
#include "sojourn/series.h"
#include "sojourn/text.h"
#include "sojourn/write_all.h"

/* To the disk at most this often: it can take longer than an interval. */
#define SYNC_NS NSEC_PER_SEC
/* Finding out what is running out takes a look at every socket and descriptor. */
#define JUDGE_NS (10 * NSEC_PER_SEC)

struct sink_record {
	struct sink sink;
	const struct snapshot_source *source;
	struct sink_record_options options;
	int fd;
	off_t size;	/* of the file */
	bool half_line; /* a write ended within a line */
	bool complained;
	uint64_t count;
	uint64_t bytes; /* of readings, by this process */
	uint64_t synced_ns;
	uint64_t judged_ns;
};

/* ---- opening ---- */

/*
 * Locked: two writers would tear each other's lines. The file names clients and everything that the host runs, and is
 * often written as root. So it is for its owner, and no link of another user is followed.
 */
static int open_file(const char *path, int *ret_fd)
{
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !recording_begins(fd))
		return -EEXIST;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* The file to be replaced must be a recording, too. */
static int check_previous(const struct sink_record_options *options)
{
	autofree char *previous = text_format("%s.1", options->path);
	struct stat st;

	if (!previous)
		return -ENOMEM;
	if (!options->max_bytes || lstat(previous, &st) < 0)
		return 0;
	return recording_is(previous) ? 0 : -EEXIST;
}

/* ---- writing ---- */

static int add_text(struct sink_record *sink, const char *text, size_t length)
{
	size_t written;
	int r = write_all(sink->fd, text, length, &written);

	sink->size += (off_t)written;
	if (written)
		sink->half_line = text[written - 1] != '\n';
	return r;
}

/* A reading that was cut off stays, as a line of its own, which readers skip. */
static int end_half_line(struct sink_record *sink)
{
	return sink->half_line ? add_text(sink, "\n", 1) : 0;
}

/* Half a header would make the file no recording, so the file is then emptied again. */
static int write_header(struct sink_record *sink)
{
	char text[256];
	int length = snprintf(text, sizeof(text),
			      RECORDING_MAGIC ",\"tool\":\"sojourn " SOJOURN_VERSION
					      "\",\"interval_ns\":%" PRIu64 "}\n",
			      sink->options.interval_ns);
	bool first = !sink->size;
	int r = end_half_line(sink);

	if (!r)
		r = add_text(sink, text, (size_t)length);
	if (r < 0 && first && !ftruncate(sink->fd, 0)) {
		sink->size = 0;
		sink->half_line = false;
	}
	return r;
}

static int find_end(struct sink_record *sink)
{
	char last = '\n';

	sink->size = lseek(sink->fd, 0, SEEK_END);
	if (sink->size < 0)
		return -errno;
	/* A header that was cut off is dropped: a newline after it would not make it valid. */
	if (sink->size < (off_t)sizeof(RECORDING_MAGIC) - 1) {
		if (ftruncate(sink->fd, 0) < 0)
			return -errno;
		sink->size = 0;
	}
	if (sink->size && pread(sink->fd, &last, 1, sink->size - 1) != 1)
		return -EIO;
	sink->half_line = last != '\n';
	return 0;
}

int sink_record_follow(const char *path, int *ret_fd)
{
	autofree char *previous = text_format("%s.1", path);
	int r;

	if (!previous)
		return -ENOMEM;
	if (rename(path, previous) < 0)
		return -errno;
	r = open_file(path, ret_fd);
	if (r < 0 && rename(previous, path) < 0)
		return -errno;
	return r;
}

static int rotate(struct sink_record *sink)
{
	const struct sink_record_options *options = &sink->options;
	autoclose int fd = -1;
	int r = options->follow ? options->follow(options->context, &fd)
				: sink_record_follow(options->path, &fd);

	if (r < 0)
		return r;
	close(sink->fd);
	sink->fd = TAKE_FD(fd);
	return find_end(sink);
}

static int append(struct sink_record *sink, const struct run *run)
{
	autofree char *text = run_to_json(run);
	size_t length = text ? strlen(text) : 0;
	uint64_t now = clock_now_ns();
	int r = text ? end_half_line(sink) : -ENOMEM;

	/* Alone in its file, a reading stays there however long it is. */
	if (!r && sink->options.max_bytes && sink->size > 512 &&
	    (uint64_t)sink->size + length > sink->options.max_bytes)
		r = rotate(sink);
	if (!r && !sink->size)
		r = write_header(sink);
	if (!r)
		r = add_text(sink, text, length);
	if (r < 0)
		return r;
	sink->count++;
	sink->bytes += length;
	if (now - sink->synced_ns < SYNC_NS)
		return 0;
	sink->synced_ns = now;
	return fdatasync(sink->fd) < 0 ? -errno : 0;
}

/* ---- readings ---- */

static int take_reading(struct sink_record *sink, struct run **ret_run)
{
	const struct snapshot_source *source = sink->source;
	uint64_t now = clock_now_ns();
	autorun struct run *run = NULL;
	int r = source->brief(source->context, &run);

	if (!r && now - sink->judged_ns >= JUDGE_NS) {
		sink->judged_ns = now;
		r = source->judge(source->context, run);
	}
	if (r < 0)
		return r;
	*ret_run = TAKE_PTR(run);
	return 0;
}

static struct sink_record *of(struct sink *sink)
{
	return (struct sink_record *)sink;
}

int sink_record_begin(struct sink *base, const struct snapshot_source *source)
{
	struct sink_record *sink = of(base);
	autorun struct run *run = NULL;
	int r;

	sink->source = source;
	sink->judged_ns = clock_now_ns();
	r = take_reading(sink, &run);
	if (!r)
		r = write_header(sink);
	return r < 0 ? r : append(sink, run);
}

static int interval(struct sink *base)
{
	struct sink_record *sink = of(base);
	autorun struct run *run = NULL;
	int r = take_reading(sink, &run), error;

	if (r < 0)
		return r;
	error = append(sink, run);
	if ((error < 0) != sink->complained)
		sink->options.say(sink->options.path, error);
	sink->complained = error < 0;
	return 0;
}

static int end(struct sink *sink, struct run *run)
{
	int r;

	/* Its points stand in the file already, as readings. */
	for (size_t i = 0; i < run->service_count; i++) {
		run_samples_free(TAKE_PTR(run->services[i].samples));
		run_samples_free(TAKE_PTR(run->services[i].call_samples));
		run_series_free(TAKE_PTR(run->services[i].series));
	}
	r = append(of(sink), run);
	if (r < 0)
		return r;
	return fdatasync(of(sink)->fd) < 0 ? -errno : 0;
}

static void close_sink(struct sink *sink)
{
	cleanup_close(&of(sink)->fd);
	free(sink);
}

static const struct sink_operations operations = {
	.interval = interval, .end = end, .close = close_sink};

int sink_record_open(const struct sink_record_options *options, struct sink **ret_sink)
{
	struct sink_record *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	*sink = (struct sink_record){.sink.operations = &operations, .options = *options, .fd = -1};
	r = check_previous(options);
	if (!r)
		r = open_file(options->path, &sink->fd);
	if (!r)
		r = find_end(sink);
	if (r < 0)
		sink_close(&sink->sink);
	else
		*ret_sink = &sink->sink;
	return r;
}

uint64_t sink_record_count(const struct sink *sink)
{
	return ((const struct sink_record *)sink)->count;
}

uint64_t sink_record_bytes(const struct sink *sink)
{
	return ((const struct sink_record *)sink)->bytes;
}
