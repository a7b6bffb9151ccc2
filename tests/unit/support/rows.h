/* SPDX-License-Identifier: MIT */
/* Steps, targets and statuses with every member set; for runs.c. */
#ifndef UNIT_SUPPORT_ROWS_H
#define UNIT_SUPPORT_ROWS_H

#include "sequence.h"

static inline void fill_rows(struct run_row_list *rows, const char *first, const char *second,
			     struct sequence *sequence)
{
	rows->count = 2;
	rows->list = need(calloc(rows->count, sizeof(*rows->list)));
	for (size_t i = 0; i < rows->count; i++) {
		struct run_row *step = &rows->list[i];

		step->name = text(i ? second : first);
		step->target = text("http://server/items");
		step->method = text(i ? "GET" : "POST");
		step->requests = next(sequence);
		step->drained = next(sequence);
		step->bytes_in = next(sequence);
		step->bytes_out = next(sequence);
		set_counters(step->status, ARRAY_SIZE(step->status), sequence);
		set_counters(step->errors, RUN_ERROR_COUNT, sequence);
		set_histogram(&step->round_trip, sequence);
		set_histogram(&step->response_time, sequence);
	}
}

#endif
