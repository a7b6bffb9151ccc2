// SPDX-License-Identifier: MIT
/* Finds the readings of a recording, and reads them one by one; see recording.h. */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sojourn/array.h"
#include "sojourn/refuse.h"

/* Longer than any document that run_from_json() reads, and its line's end. */
#define LINE_MAX_BYTES ((32U << 20) + 1)

#define READING_MAGIC "{\"schema\":\"" RUN_SCHEMA "\""

bool recording_begins(int fd)
{
	char head[sizeof(RECORDING_MAGIC) - 1];
	ssize_t got = pread(fd, head, sizeof(head), 0);

	return got >= 0 && !memcmp(head, RECORDING_MAGIC, (size_t)got);
}

/* Only a regular file can be examined in advance: bytes read from a pipe are gone. */
bool recording_is(const char *path)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_size >= (off_t)sizeof(RECORDING_MAGIC) - 1 && recording_begins(fd);
}

/* ---- finding the readings ---- */

static bool begins(const char *line, size_t length, const char *magic)
{
	return length >= strlen(magic) && !memcmp(line, magic, strlen(magic));
}

/* The examined part of a line. The whole line may be longer than memory, for example in a sparse file. */
struct scan {
	char head[64];
	size_t head_length;
	size_t length;
	off_t offset;
};

static int end_line(struct recording *recording, const struct scan *scan)
{
	if (begins(scan->head, scan->head_length, RECORDING_MAGIC)) {
		recording->sessions++;
		return 0;
	}
	if (!begins(scan->head, scan->head_length, READING_MAGIC) || !recording->sessions ||
	    scan->length > LINE_MAX_BYTES) {
		recording->damaged++;
		return 0;
	}
	if (ARRAY_GROW(recording->lines, recording->count) < 0)
		return -ENOMEM;
	recording->lines[recording->count++] = (struct recording_line){
		.offset = scan->offset, .length = scan->length, .session = recording->sessions};
	return 0;
}

/* Add the next bytes of the line, with its newline if they have it. */
static void scan_bytes(struct scan *scan, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length && scan->head_length < sizeof(scan->head); i++)
		scan->head[scan->head_length++] = bytes[i];
	scan->length += length;
}

static int scan_chunk(struct recording *recording, struct scan *scan, const char *chunk,
		      size_t length)
{
	int r = 0;

	while (!r && length) {
		const char *end = memchr(chunk, '\n', length);
		size_t part = end ? (size_t)(end - chunk) + 1 : length;

		scan_bytes(scan, chunk, part);
		chunk += part;
		length -= part;
		if (!end)
			break;
		r = end_line(recording, scan);
		*scan = (struct scan){.offset = scan->offset + (off_t)scan->length};
	}
	return r;
}

/* Return where the file continues with data, at or after @offset. A hole has no end of a line in it. */
static off_t after_hole(int fd, off_t offset)
{
	off_t data = lseek(fd, offset, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		data = lseek(fd, 0, SEEK_END);
	return data > offset ? data : offset;
}

static int find_lines(struct recording *recording)
{
	struct scan scan = {};
	char chunk[65536];
	ssize_t got;
	int r = 0;

	do {
		off_t at = scan.offset + (off_t)scan.length;

		/* A crash of the host may leave gigabytes of it. */
		if (scan.length > LINE_MAX_BYTES)
			scan.length += (size_t)(after_hole(recording->fd, at) - at);
		got = pread(recording->fd, chunk, sizeof(chunk), scan.offset + (off_t)scan.length);
		if (got > 0)
			r = scan_chunk(recording, &scan, chunk, (size_t)got);
	} while (!r && (got > 0 || (got < 0 && errno == EINTR)));
	recording->cut_off = scan.length;
	return !r && got < 0 ? -errno : r;
}

int recording_open(const char *path, struct recording **ret_recording, char **ret_error)
{
	CLEANUP(cleanup_recording_close)
	struct recording *recording = calloc(1, sizeof(*recording));
	int r;

	if (!recording)
		return -ENOMEM;
	recording->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (recording->fd < 0)
		return -errno;
	if (!recording_is(path))
		return refuse(ret_error, "not a recording, which begins with %s", RECORDING_MAGIC);
	r = find_lines(recording);
	if (!r && !recording->count)
		r = refuse(ret_error, "a recording without one whole reading%s",
			   recording->cut_off ? ": the first is cut off" : "");
	if (r < 0)
		return r;
	*ret_recording = TAKE_PTR(recording);
	return 0;
}

void recording_close(struct recording *recording)
{
	if (!recording)
		return;
	cleanup_close(&recording->fd);
	free(recording->lines);
	free(recording);
}

/* ---- reading them ---- */

static int read_exactly(int fd, char *buffer, size_t length, off_t offset)
{
	while (length) {
		ssize_t got = pread(fd, buffer, length, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EINVAL; /* shortened meanwhile */
		buffer += got;
		offset += got;
		length -= (size_t)got;
	}
	return 0;
}

int recording_read(const struct recording *recording, size_t index, struct run **ret_run)
{
	const struct recording_line *line = &recording->lines[index];
	autofree char *text = malloc(line->length), *error = NULL;
	int r = text ? read_exactly(recording->fd, text, line->length, line->offset) : -ENOMEM;

	return r < 0 ? r : run_from_json(text, line->length, ret_run, &error);
}
