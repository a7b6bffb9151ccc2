// SPDX-License-Identifier: MIT
/* Judges whether the timed exchanges of UDP represent all, for `service`; see run_sum.h. */
#include <stdlib.h>

#include "sojourn/run_sum.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

/* More than one ambiguous reply in this many exchanges makes `service` doubtful. */
#define DOUBTFUL_PART 10

bool run_service_is_doubtful(const struct run_service *service)
{
	return service->losses[RUN_LOSS_AMBIGUOUS_REPLIES] > service->exchanges / DOUBTFUL_PART;
}

void run_stage_forget(struct run_stage *stage, char *reason)
{
	stage->measured = false;
	stage->histogram = (struct histogram){0};
	free(stage->reason);
	stage->reason = reason;
}

static char *why_doubtful(const struct run_service *service)
{
	return text_format("%s of %s replies cannot be matched to their requests",
			   as_count(service->losses[RUN_LOSS_AMBIGUOUS_REPLIES]),
			   as_count(service->exchanges));
}

void run_doubt(struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];
		struct run_stage *stage = &service->stages[STAGE_SERVICE];

		if (stage->measured && run_service_is_doubtful(service))
			run_stage_forget(stage, why_doubtful(service));
	}
}
