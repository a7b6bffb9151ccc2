// SPDX-License-Identifier: MIT
/* Finds the readings of a recording, and reads them one by one; see recording.h. */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/refuse.h"

#define READING_MAGIC "{\"schema\":\"" RUN_SCHEMA "\""

bool recording_begins(int fd)
{
	char head[sizeof(RECORDING_MAGIC) - 1];
	ssize_t got = pread(fd, head, sizeof(head), 0);

	return got >= 0 && !memcmp(head, RECORDING_MAGIC, (size_t)got);
}

/* Of what is no regular file (a pipe), nothing can be looked at in advance. */
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

static int add_line(struct recording *recording, off_t offset, size_t length)
{
	struct recording_line *lines = recording->lines;

	/* Powers of two: a day of seconds has 86,400. */
	if (!(recording->count & (recording->count + 1)) || !lines) {
		lines = reallocarray(lines, 2 * recording->count + 2, sizeof(*lines));
		if (!lines)
			return -ENOMEM;
		recording->lines = lines;
	}
	lines[recording->count++] = (struct recording_line){
		.offset = offset, .length = length, .session = recording->sessions};
	return 0;
}

static int take_line(struct recording *recording, const char *line, size_t length, off_t offset)
{
	if (line[length - 1] != '\n') {
		recording->cut_off = length;
		return 0;
	}
	if (begins(line, length, RECORDING_MAGIC)) {
		recording->sessions++;
		return 0;
	}
	if (begins(line, length, READING_MAGIC) && recording->sessions)
		return add_line(recording, offset, length);
	recording->damaged++;
	return 0;
}

static int find_lines(struct recording *recording, FILE *file)
{
	autofree char *line = NULL;
	size_t capacity = 0;
	off_t offset = 0;
	ssize_t length;
	int r = 0;

	while (!r && (length = getline(&line, &capacity, file)) > 0) {
		r = take_line(recording, line, (size_t)length, offset);
		offset += length;
	}
	return !r && ferror(file) ? -EIO : r;
}

static int check(const struct recording *recording, char **ret_error)
{
	if (recording->count)
		return 0;
	return refuse(ret_error, "a recording without one whole reading%s",
		      recording->cut_off ? ": the first is cut off" : "");
}

int recording_open(const char *path, struct recording **ret_recording, char **ret_error)
{
	CLEANUP(cleanup_recording_close)
	struct recording *recording = calloc(1, sizeof(*recording));
	autofclose FILE *file = NULL;
	int r;

	if (!recording)
		return -ENOMEM;
	recording->fd = open(path, O_RDONLY | O_CLOEXEC);
	file = recording->fd < 0 ? NULL : fopen(path, "re");
	if (!file)
		return -errno;
	if (!recording_is(path))
		return refuse(ret_error, "not a recording, which begins with %s", RECORDING_MAGIC);
	r = find_lines(recording, file);
	if (!r)
		r = check(recording, ret_error);
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
