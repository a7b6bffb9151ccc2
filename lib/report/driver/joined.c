// SPDX-License-Identifier: MIT
/*
 * The joined exchanges: their number, the parts that dominate the slow ones, and the slowest, a
 * line each. Shares are of the user's wait: the response time under a rate, otherwise the round
 * trip.
 */
#include <string.h>

#include "parts.h"
#include "sojourn/clock.h"
#include "sojourn/text.h"

#define NAME_COLUMNS	      17
#define NAME_COLUMNS_INFERRED 24 /* "accept or socket queue" */
#define CELL_COLUMNS	      15

/* Maximum of slowest ones printed; the document and a trace may have more. */
#define SLOWEST_LINES 10
/* Maximum without -v. */
#define SLOWEST_FIRST 2
/* Smaller parts do not distinguish exchanges. */
#define ALIKE_PERCENT 10

enum shown {
	ALWAYS, /* the time is a uint64_t */
	IF_NOT_ZERO,
	IF_KNOWN, /* it is a struct run_number */
};

/* A part of an exchange as a row, and its time in the sums. */
struct part {
	const char *name; /* NULL: the stage's */
	size_t offset;	  /* in struct run_parts */
	enum shown shown;
	unsigned int stage;
	bool detail; /* divides the row above, not part of the total */
};

#define OF(member)   offsetof(struct run_parts, member)
#define STAGE(which) {NULL, OF(stages[which]), IF_KNOWN, which, false}

static const struct part parts[] = {
	{"not yet sent", OF(wait_ns), IF_NOT_ZERO, 0, false},
	{"network + client", OF(network_ns), ALWAYS, 0, false},
	STAGE(STAGE_ACCEPT_QUEUE),
	STAGE(STAGE_SOCKET_QUEUE),
	STAGE(STAGE_RECEIVE),
	STAGE(STAGE_SERVICE),
	{"  running", OF(running_ns), IF_KNOWN, 0, true},
	{"  runnable", OF(runnable_ns), IF_KNOWN, 0, true},
	{"  blocked", OF(blocked_ns), IF_KNOWN, 0, true},
	STAGE(STAGE_RESPOND),
	STAGE(STAGE_TRANSMIT_QUEUE),
};

static unsigned int name_columns(const struct run_joined *joined)
{
	return run_accept_is_inferred(joined->stages) ? NAME_COLUMNS_INFERRED : NAME_COLUMNS;
}

static const char *part_name(const struct run_joined *joined, const struct part *part,
			     char buffer[static SHORT_TEXT])
{
	return part->name ? part->name
			  : page_words(run_stage_label(joined->stages, part->stage), buffer);
}

static uint64_t part_sum(const struct part *part, const struct run_parts *sums)
{
	const void *time = (const char *)sums + part->offset;

	return part->shown == IF_KNOWN ? ((const struct run_number *)time)->value
				       : *(const uint64_t *)time;
}

static bool is_shown(const struct part *part, const struct run_joined *joined)
{
	const void *time = (const char *)&joined->sum + part->offset;

	if (part->shown == IF_KNOWN)
		return ((const struct run_number *)time)->known;
	return part->shown == ALWAYS || *(const uint64_t *)time;
}

static double share(uint64_t part_ns, const struct run_parts *sums)
{
	uint64_t total_ns = run_parts_total(sums);

	return total_ns ? 100.0 * (double)part_ns / (double)total_ns : 0;
}

bool report_part(const struct run_joined *joined, const struct run_parts *sums, size_t i,
		 struct report_part *ret_part)
{
	if (!is_shown(&parts[i], joined))
		return false;
	snprintf(ret_part->name, sizeof(ret_part->name), "%s",
		 part_name(joined, &parts[i], UNITS_ROOM));
	ret_part->sum_ns = part_sum(&parts[i], sums);
	ret_part->share = share(ret_part->sum_ns, sums);
	return true;
}

_Static_assert(ARRAY_SIZE(parts) == REPORT_PARTS, "parts.h says how many");

/* Sort the indices of parts[], without details, by share in @sums. */
static void sort_parts(const struct run_parts *sums, size_t order[static ARRAY_SIZE(parts)],
		       size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t at = count;

		if (parts[i].detail)
			continue;
		for (; at && part_sum(&parts[order[at - 1]], sums) < part_sum(&parts[i], sums);
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
		count++;
	}
	*ret_count = count;
}

void report_shares(const struct run_joined *joined, const struct run_parts *sums,
		   unsigned int columns, size_t size, char *ret_text)
{
	size_t order[ARRAY_SIZE(parts)], count, length = 0;
	char item[64];

	ret_text[0] = '\0';
	sort_parts(sums, order, &count);
	for (size_t i = 0; i < count; i++) {
		double percent = share(part_sum(&parts[order[i]], sums), sums);

		snprintf(item, sizeof(item), "%s%s %s", i ? ", " : "",
			 part_name(joined, &parts[order[i]], UNITS_ROOM), as_share(percent));
		if (percent < 0.5 || text_columns(ret_text) + text_columns(item) > columns ||
		    length + strlen(item) >= size)
			return;
		length += (size_t)snprintf(ret_text + length, size - length, "%s", item);
	}
}

const char *report_percentile_name(uint32_t per_mille, char buffer[static SHORT_TEXT])
{
	if (per_mille % 10)
		snprintf(buffer, SHORT_TEXT, "p%u.%u", per_mille / 10, per_mille % 10);
	else
		snprintf(buffer, SHORT_TEXT, "p%u", per_mille / 10);
	return buffer;
}

/* Return the tail above p99, or the highest with joined exchanges; NULL: none. */
static const struct run_tail *main_tail(const struct run_joined *joined)
{
	const struct run_tail *tail = NULL;

	for (size_t i = 0; i < joined->tail_count && joined->tail[i].per_mille <= 990; i++)
		if (joined->tail[i].count)
			tail = &joined->tail[i];
	return tail;
}

static void print_conclusion(const struct page *page, const struct run_joined *joined,
			     const struct run_tail *tail)
{
	char shares[512];

	report_shares(joined, &tail->sum, sizeof(shares), sizeof(shares), shares);
	page_style(page, STYLE_BOLD);
	page_wrap(page, 0, "of the requests slower than the client's %s, %s (%s joined): %s",
		  report_percentile_name(tail->per_mille, UNITS_ROOM),
		  as_time((double)tail->above_ns), as_count(tail->count), shares);
	page_style(page, STYLE_PLAIN);
}

/* A narrow page omits the lowest percentiles. */
static size_t first_tail(const struct page *page, const struct run_joined *joined)
{
	size_t fit = page->width > name_columns(joined)
			     ? (page->width - name_columns(joined)) / CELL_COLUMNS
			     : 0;

	fit = fit ? fit : 1;
	return joined->tail_count > fit ? joined->tail_count - fit : 0;
}

static void print_heads(const struct page *page, const struct run_joined *joined)
{
	size_t first = first_tail(page, joined);

	page_left(page, name_columns(joined), "%s", "slower than");
	for (size_t i = first; i < joined->tail_count; i++)
		page_right(page, CELL_COLUMNS, "%s",
			   report_percentile_name(joined->tail[i].per_mille, UNITS_ROOM));
	fputc('\n', page->file);
	page_left(page, name_columns(joined), "%s", "");
	for (size_t i = first; i < joined->tail_count; i++)
		page_right(page, CELL_COLUMNS, "%s", as_time((double)joined->tail[i].above_ns));
	fputc('\n', page->file);
	page_left(page, name_columns(joined), "%s", "requests");
	for (size_t i = first; i < joined->tail_count; i++)
		page_right(page, CELL_COLUMNS, "%s", as_count(joined->tail[i].count));
	fputc('\n', page->file);
}

static void print_totals(const struct page *page, const struct run_joined *joined, bool rated)
{
	page_left(page, name_columns(joined), "%s", rated ? "mean response" : "mean round trip");
	for (size_t i = first_tail(page, joined); i < joined->tail_count; i++) {
		const struct run_tail *tail = &joined->tail[i];
		double total_ns = (double)run_parts_total(&tail->sum);

		page_right(page, CELL_COLUMNS, "%s",
			   tail->count ? as_time(total_ns / (double)tail->count) : "-");
	}
	fputc('\n', page->file);
}

static bool is_largest(const struct part *part, const struct run_parts *sums)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!parts[i].detail && part_sum(&parts[i], sums) > part_sum(part, sums))
			return false;
	return !part->detail && part_sum(part, sums);
}

static void print_cell(const struct page *page, const struct run_tail *tail, uint64_t sum_ns,
		       bool largest)
{
	if (!tail->count) {
		page_right(page, CELL_COLUMNS, "-");
		return;
	}
	if (largest)
		page_style(page, STYLE_HOT);
	page_right(page, CELL_COLUMNS, "%s %6s", as_time((double)sum_ns / (double)tail->count),
		   as_share(share(sum_ns, &tail->sum)));
	if (largest)
		page_style(page, STYLE_PLAIN);
}

static void print_part(const struct page *page, const struct run_joined *joined,
		       const struct part *part)
{
	if (!is_shown(part, joined))
		return;
	page_left(page, name_columns(joined), "%s", part_name(joined, part, UNITS_ROOM));
	for (size_t i = first_tail(page, joined); i < joined->tail_count; i++) {
		const struct run_tail *tail = &joined->tail[i];

		print_cell(page, tail, part_sum(part, &tail->sum), is_largest(part, &tail->sum));
	}
	fputc('\n', page->file);
}

/* Print by how much the stages exceed the round trip, so that columns add up. */
static void print_overhang(const struct page *page, const struct run_joined *joined)
{
	if (!joined->sum.overhang_ns)
		return;
	page_left(page, name_columns(joined), "%s", "after its end");
	for (size_t i = first_tail(page, joined); i < joined->tail_count; i++) {
		const struct run_tail *tail = &joined->tail[i];
		double mean_ns =
			tail->count ? (double)tail->sum.overhang_ns / (double)tail->count : 0;

		if (mean_ns >= 0.5)
			page_right(page, CELL_COLUMNS, "-%s %6s", as_time(mean_ns),
				   as_share(share(tail->sum.overhang_ns, &tail->sum)));
		else
			page_right(page, CELL_COLUMNS, "-");
	}
	fputc('\n', page->file);
}

static void print_tail(const struct page *page, const struct run_joined *joined, bool rated)
{
	const struct run_tail *tail = main_tail(joined);

	if (!tail)
		return;
	if (page->verbose)
		fputc('\n', page->file);
	print_conclusion(page, joined, tail);
	if (!page->verbose)
		return;
	print_heads(page, joined);
	print_totals(page, joined, rated);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		print_part(page, joined, &parts[i]);
	print_overhang(page, joined);
}

/* Omit the address on a narrow page, as it is mostly the same. */
static const char *client_text(const struct page *page, const struct run_exchange *exchange)
{
	const char *port = strrchr(exchange->client, ':');

	return page->width >= 100 || !port ? exchange->client : port;
}

/* Return the parts with a notable share, as bits. */
static unsigned int holders(const struct run_parts *sums)
{
	unsigned int found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!parts[i].detail && share(part_sum(&parts[i], sums), sums) >= ALIKE_PERCENT)
			found |= 1U << i;
	return found;
}

/* Count exchanges from @first on dominated by the same parts, for one common row. */
static size_t count_alike(const struct run_joined *joined, size_t first, size_t end,
			  struct run_parts *ret_sum)
{
	unsigned int of_first = holders(&joined->slowest[first].parts);
	size_t i = first;

	*ret_sum = (struct run_parts){0};
	for (; i < end && holders(&joined->slowest[i].parts) == of_first; i++)
		run_parts_add(ret_sum, &joined->slowest[i].parts);
	return i - first;
}

/* Write "to 20.0 ms: 10 requests", or place and time of a single one. */
static void format_alike(const struct page *page, const struct run_joined *joined, size_t first,
			 size_t count, size_t size, char *ret_text)
{
	const struct run_exchange *exchange = &joined->slowest[first];
	const struct run_exchange *last = &joined->slowest[first + count - 1];
	double at_s = (double)(exchange->start_ns - joined->begin_ns) / NSEC_PER_SEC;
	const char *most = as_time((double)run_parts_total(&exchange->parts));
	const char *least = as_time((double)run_parts_total(&last->parts));

	if (count > 1 && strcmp(most, least))
		snprintf(ret_text, size, "to %s: %zu requests", least, count);
	else if (count > 1)
		snprintf(ret_text, size, "%zu requests", count);
	else
		snprintf(ret_text, size, "at %.3f s  %s #%u", at_s, client_text(page, exchange),
			 exchange->index);
}

static void print_alike(const struct page *page, const struct run_joined *joined, size_t first,
			size_t count, const struct run_parts *sum)
{
	const struct run_exchange *exchange = &joined->slowest[first];
	char shares[512], left[256];
	unsigned int used;

	format_alike(page, joined, first, count, sizeof(left), left);
	page_left(page, LABEL_COLUMNS, "%s", first ? "" : "slowest");
	page_right(page, 9, "%s", as_time((double)run_parts_total(&exchange->parts)));
	page_left(page, 0, "  %s", left);
	used = LABEL_COLUMNS + 9 + 2 + text_columns(left);
	report_shares(joined, sum, used + 2 < page->width ? page->width - used - 2 : 0,
		      sizeof(shares), shares);
	page_left(page, 0, "%s%s", *shares ? "  " : "", shares);
	fputc('\n', page->file);
}

/* Print the set of exchanges, if others may have been slower. */
static void print_of_which(const struct page *page, const struct run *run)
{
	const struct run_joined *joined = run->joined;

	if (joined->joined >= run->driver->requests || !page->verbose)
		return;
	page_wrap(page, 0, "slowest of those %s, %s of %s requests:",
		  joined->threshold < RUN_SAMPLE_ALL ? "sampled" : "joined",
		  as_count(joined->joined), as_count(run->driver->requests));
}

static void print_slowest(const struct page *page, const struct run *run)
{
	const struct run_joined *joined = run->joined;
	size_t most = page->verbose ? SLOWEST_LINES : SLOWEST_FIRST;
	size_t end = joined->slowest_count < SLOWEST_LINES ? joined->slowest_count : SLOWEST_LINES;
	size_t i = 0;

	if (!joined->slowest_count || page->tight == TIGHT_MOST)
		return;
	if (page->verbose)
		fputc('\n', page->file);
	print_of_which(page, run);
	for (size_t row = 0, count; i < end && row < most; i += count, row++) {
		struct run_parts sum;

		count = count_alike(joined, i, end, &sum);
		print_alike(page, joined, i, count, &sum);
	}
	if (page->verbose && joined->slowest_count > i) {
		page_left(page, LABEL_COLUMNS, "%s", "");
		page_wrap(page, LABEL_COLUMNS, "and %s more, in the document and the trace",
			  as_count(joined->slowest_count - i));
	}
}

/* Print the counts above 0. */
static void print_counts(const struct page *page, const struct run_joined *joined)
{
	autoitems struct items items = items_begin(page, "joined", LABEL_COLUMNS);

	items_add(&items, "%s exchange%s", as_count(joined->joined),
		  joined->joined == 1 ? "" : "s");
	if (joined->threshold < RUN_SAMPLE_ALL && joined->threshold)
		items_add(&items, "1 in %s sampled", as_count(RUN_SAMPLE_ALL / joined->threshold));
	else
		items_add(&items, "every one sampled");
	items_some(&items, "early", joined->early);
	items_some(&items, "driver only", joined->driver_only);
	items_some(&items, "observer only", joined->observer_only);
	items_some(&items, "other clients", joined->other_clients);
	items_some(&items, "port used again", joined->repeated);
	items_some(&items, "ambiguous", joined->ambiguous);
	items_some(&items, "implausible", joined->implausible);
}

void report_joined(const struct page *page, const struct run *run)
{
	const struct run_joined *joined = run->joined;

	if (!joined)
		return;
	if (!joined->joined) {
		page_left(page, LABEL_COLUMNS, "joined");
		page_wrap(page, LABEL_COLUMNS, "no exchange: %s",
			  joined->reason ? joined->reason : "no reason given");
		page_wrap(page, 0, "note: means are subtracted instead, and no tail is explained");
		return;
	}
	if (page->verbose)
		print_counts(page, joined);
	if (joined->reason)
		page_wrap(page, 0, "note: %s", joined->reason);
	print_tail(page, joined, run->driver->rate != 0);
	print_slowest(page, run);
}
