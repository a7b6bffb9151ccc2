/* SPDX-License-Identifier: MIT */
/* What observing cost, and what the observer as a whole did not see. */
#include "report_parts.h"

#include "sojourn/report.h"

static uint64_t recursion_misses(const struct run_cost *cost)
{
	uint64_t sum = 0;

	for (size_t i = 0; cost && i < cost->program_count; i++)
		sum += cost->programs[i].recursion_misses;
	return sum;
}

uint64_t report_lost(const struct run *run, const struct run_service *service)
{
	return service->losses[RUN_LOSS_STORAGE_FAILED] + service->losses[RUN_LOSS_UNTIMED] +
	       recursion_misses(run->cost) + run->services_dropped;
}

static uint64_t all_exchanges(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->service_count; i++)
		sum += run->services[i].exchanges;
	return sum;
}

/* Known only if every program's time is: a part of the cost is not the cost. */
static struct run_number all_run_ns(const struct run_cost *cost)
{
	struct run_number sum = {.known = cost->program_count > 0};

	for (size_t i = 0; i < cost->program_count; i++) {
		sum.known &= cost->programs[i].run_ns.known;
		sum.value += cost->programs[i].run_ns.value;
	}
	return sum;
}

static void report_summary(const struct page *page, const struct run *run)
{
	struct items items = items_begin(page, "observer", LABEL_COLUMNS);
	struct run_number run_ns = all_run_ns(run->cost);
	uint64_t exchanges = all_exchanges(run);
	char text[SHORT_TEXT];

	items_add(&items, "CPU %s", page_time((double)run->cost->cpu_ns, text));
	if (run->duration_ns)
		items_add(&items, "%.2f %% of a core",
			  100 * (double)run->cost->cpu_ns / (double)run->duration_ns);
	items_add(&items, "memory %s", page_bytes(run->cost->resident_bytes, text));
	items_add(&items, "BPF maps %s", page_bytes(run->cost->map_bytes, text));
	if (run_ns.known && exchanges)
		items_add(&items, "BPF %.0f ns per exchange",
			  (double)run_ns.value / (double)exchanges);
	items_end(&items);
}

static void report_programs(const struct page *page, const struct run_cost *cost)
{
	char text[SHORT_TEXT];

	for (size_t i = 0; i < cost->program_count; i++) {
		const struct run_program *program = &cost->programs[i];

		if (!program->runs.known || !program->run_ns.known || !program->runs.value)
			continue;
		page_left(page, LABEL_COLUMNS, "%s", "");
		page_left(page, 26, "%.*s", (int)sizeof(program->name), program->name);
		page_right(page, 16, "%s", page_count(program->runs.value, text));
		page_left(page, 0, " runs");
		page_right(page, 8, "%.0f",
			   (double)program->run_ns.value / (double)program->runs.value);
		page_left(page, 0, " ns/run");
		fputc('\n', page->file);
	}
}

static void report_misses(const struct page *page, const struct run *run)
{
	for (size_t i = 0; i < run->cost->program_count; i++) {
		const struct run_program *program = &run->cost->programs[i];

		if (program->recursion_misses)
			page_counted(page, "caveats", program->recursion_misses,
				     "recursion misses: events that %.*s did not see",
				     (int)sizeof(program->name), program->name);
	}
	if (run->services_dropped)
		page_counted(page, "caveats", run->services_dropped,
			     "services dropped: no slot was left, they are not observed at all");
}

void report_cost(const struct page *page, const struct run *run)
{
	report_summary(page, run);
	report_programs(page, run->cost);
	report_misses(page, run);
}
