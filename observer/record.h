/* SPDX-License-Identifier: MIT */
/* `sojourn record`: how its file begins and ends, and what is said of it. */
#ifndef OBSERVER_RECORD_H
#define OBSERVER_RECORD_H

#include "options.h"
#include "sink_record.h"

/* Makes the file or goes on with it, if one was asked for. An exit code; what failed was logged. */
int record_open(const struct observe_options *options, struct sink_record **ret_sink);

/* Writes @run, the last reading, and says what was written unless --quiet. -errno: it was logged. */
int record_end(const struct observe_options *options, struct sink_record *sink, struct run *run);

#endif
