// SPDX-License-Identifier: MIT
/*
 * Any bytes as a recording. It is refused with a sentence, or every line is reported as a reading,
 * as damaged or as cut off. The sum is a document that can be read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "sinks/recording/recording.h"

static void check_lines(const struct recording *recording, size_t size)
{
	size_t end = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_line *line = &recording->lines[i];

		require((size_t)line->offset >= end && line->length);
		end = (size_t)line->offset + line->length;
		require(line->session >= 1 && line->session <= recording->sessions);
	}
	require(end + recording->cut_off <= size);
}

static void check_total(const struct recording *recording)
{
	struct recording_summary summary = {0};
	autofree char *text = NULL, *error = NULL;
	autorun struct run *run = NULL, *again = NULL;

	if (recording_total(recording, &run, &summary))
		return;
	require(summary.readings + summary.damaged <= recording->count + recording->damaged);
	text = run_to_json(run);
	require(text && !run_from_json(text, strlen(text), &again, &error));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	autoclose int fd = memfd_create("recording", MFD_CLOEXEC);
	autofree char *error = NULL;
	char path[64];

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (recording_open(path, &recording, &error)) {
		require(!recording && error && *error && !strchr(error, '\n'));
		return 0;
	}
	check_lines(recording, size);
	for (size_t i = 0; i < recording->count; i++) {
		autorun struct run *run = NULL;

		require(!recording_read(recording, i, &run) == !!run);
	}
	check_total(recording);
	return 0;
}
