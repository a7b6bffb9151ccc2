// SPDX-License-Identifier: MIT
/* Events of a service that were not seen, and the consequences: a count and a sentence each. */
#include <string.h>

#include "parts.h"

/* From this share of the followed responses on, unseen ones bias the means. */
#define UNSEEN_SHARE 0.03

struct caveat {
	uint64_t count;
	char text[256];
};

#define CAVEATS (RUN_LOSS_COUNT + 3U)

/* The kernel makes no time stamp of a part that fills the send buffer: mostly large responses. */
static const char unseen_stamps[] =
	"; the means are of those seen, mostly smaller ones; --prefer transmit_start sees all";
static const char unseen[] = "; the means are of those seen";

/* Return whether unseen responses bias the means after the residence. */
static bool is_unseen(const struct run_service *service)
{
	return (double)service->losses[RUN_LOSS_TRANSMIT_UNSEEN] >
	       UNSEEN_SHARE * (double)service->transmit_followed;
}

static const char *consequence(const struct run_service *service, enum run_loss loss)
{
	const char *source = service->stages[STAGE_TRANSMIT_QUEUE].source;

	if (loss != RUN_LOSS_TRANSMIT_UNSEEN || !is_unseen(service))
		return "";
	return source && !strcmp(source, "sockops") ? unseen_stamps : unseen;
}

static void tell_loss(const struct run_service *service, enum run_loss loss, struct caveat *caveat)
{
	caveat->count = service->losses[loss];
	snprintf(caveat->text, sizeof(caveat->text), "%s: %s%s", as_words(run_loss_names[loss]),
		 run_loss_help[loss], consequence(service, loss));
}

static void tell(uint64_t count, const char *text, struct caveat *caveat)
{
	caveat->count = count;
	snprintf(caveat->text, sizeof(caveat->text), "%s", text);
}

/* With more requests per sampled read, exchanges are not single requests. */
#define BATCH_REQUESTS 1.05

static void tell_batches(const struct run_service *service, struct caveat *caveat)
{
	double each =
		service->looked ? (double)service->looked_requests / (double)service->looked : 0;

	if (each <= BATCH_REQUESTS)
		return;
	caveat->count = service->exchanges;
	snprintf(caveat->text, sizeof(caveat->text),
		 "exchanges of about %.3g requests each, that clients sent together: throughput "
		 "counts"
		 " exchanges",
		 each);
}

/* Write caveat @i on @service; false: there is none. */
static bool find_caveat(const struct run_service *service, unsigned int i,
			struct caveat *ret_caveat)
{
	const struct run_samples *samples = service->samples;

	ret_caveat->count = 0;
	if (i + 1 == CAVEATS)
		tell_batches(service, ret_caveat);
	else if (i < RUN_LOSS_COUNT)
		tell_loss(service, i, ret_caveat);
	else if (samples && i == RUN_LOSS_COUNT)
		tell(samples->lost,
		     "samples lost: single exchanges that found the ring full; they are counted and"
		     " timed above (--ring: a larger one)",
		     ret_caveat);
	else if (samples)
		tell(samples->inconsistent,
		     "samples inconsistent: single exchanges whose times were out of order",
		     ret_caveat);
	return ret_caveat->count;
}

void report_caveats(const struct page *page, const struct run_service *service)
{
	autoitems struct items items = items_begin(page, "caveats", LABEL_COLUMNS);
	const char *label = "caveats";
	struct caveat caveat;

	for (unsigned int i = 0; i < CAVEATS; i++) {
		if (!find_caveat(service, i, &caveat))
			continue;
		if (page->verbose)
			page_counted(page, label, caveat.count, "%s", caveat.text);
		else /* the name alone, without its explanation */
			items_add(&items, "%s %.*s", as_count(caveat.count),
				  (int)strcspn(caveat.text, ":,"), caveat.text);
		label = "";
	}
}
