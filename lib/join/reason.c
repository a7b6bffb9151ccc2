// SPDX-License-Identifier: MIT
/* Why exchanges could not be joined, as a sentence, as far as the document shows. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "parts.h"

/* Losses that prevent a service's exchanges from being sampled. */
static const enum run_loss causes[] = {
	RUN_LOSS_PREEXISTING, RUN_LOSS_MULTIPLEXED, RUN_LOSS_UNTIMED,
	RUN_LOSS_CUT_OFF,     RUN_LOSS_UNMATCHED,   RUN_LOSS_STORAGE_FAILED,
};

static uint64_t count_lost(const struct run *run)
{
	uint64_t count = 0;

	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].samples)
			count += run->services[i].samples->lost +
				 run->services[i].samples->inconsistent;
	return count;
}

static uint64_t count_seen(const struct run *run)
{
	uint64_t count = 0;

	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].samples)
			count += run->services[i].samples->count;
	return count;
}

void join_write_causes(FILE *text, const struct run *run)
{
	uint64_t lost = count_lost(run);

	if (lost)
		fprintf(text, "; the observer lost %" PRIu64 " samples", lost);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		uint64_t count = 0;

		for (size_t k = 0; k < run->service_count; k++)
			if (run->services[k].samples)
				count += run->services[k].losses[causes[i]];
		if (count)
			fprintf(text, "; %" PRIu64 " %s", count, run_loss_help[causes[i]]);
	}
}

/* Explain why nothing was joined, if nothing was left out for another reason. */
static void write_none(FILE *text, const struct run *run, const struct run_joined *joined)
{
	if (!run->driver->samples->count) {
		fputs("the driver has no sample of this time", text);
	} else if (!joined->driver_only) {
		fputs("the driver has no sample below the observer's threshold", text);
	} else if (!count_seen(run)) {
		fputs("the observer has no sample of this time", text);
		join_write_causes(text, run);
	} else if (joined->unknown_flow == joined->driver_only && joined->other_clients) {
		fputs("none of the driver's connections is known to the observer, which saw others:"
		      " NAT or a proxy in between changes addresses or ports",
		      text);
		join_write_causes(text, run);
	} else {
		fputs("the observer's exchanges are others than the driver's", text);
		join_write_causes(text, run);
	}
}

static void write_some(FILE *text, const struct run *run, const struct run_joined *joined)
{
	const char *separator = "";

	if (joined->driver_only) {
		fprintf(text, "the observer has no sample of %" PRIu64 " of the driver's exchanges",
			joined->driver_only);
		join_write_causes(text, run);
		separator = "; ";
	}
	if (joined->ambiguous) {
		fprintf(text,
			"%s%" PRIu64 " were left out: their source port was used again, and the two"
			" sides know a different number of such exchanges",
			separator, joined->ambiguous);
		separator = "; ";
	}
	if (joined->implausible)
		fprintf(text,
			"%s%" PRIu64
			" were left out: their times contradict those of the others, as"
			" when a server answers before it has read the whole request",
			separator, joined->implausible);
}

static void write_reason(FILE *text, const struct run *run, const struct run_joined *joined)
{
	if (!run->driver->samples)
		fputs(run->driver->unsampled ? run->driver->unsampled
					     : "the driver kept no samples",
		      text);
	else if (!joined->threshold)
		fputs("the observer took no samples (sojourn serve does with --samples)", text);
	else if (!joined->joined && !joined->ambiguous && !joined->implausible)
		write_none(text, run, joined);
	else
		write_some(text, run, joined);
}

int join_explain(const struct run *run, struct run_joined *joined)
{
	char *reason = NULL;
	size_t length = 0;
	FILE *text = open_memstream(&reason, &length);

	if (!text)
		return -ENOMEM;
	write_reason(text, run, joined);
	if (fclose(text)) {
		free(reason);
		return -ENOMEM;
	}
	if (length)
		joined->reason = TAKE_PTR(reason);
	free(reason);
	return 0;
}
