// SPDX-License-Identifier: MIT
/* The cost of observing, and what the observer as a whole missed. */
#include "parts.h"

#include "sojourn/cleanup.h"
#include "sojourn/machine.h"
#include "sojourn/report.h"

uint64_t report_lost(const struct run *run, const struct run_service *service)
{
	uint64_t sum = run_cost_misses(run->cost) + run->services_dropped;

	for (enum run_loss loss = 0; loss < RUN_LOSS_COUNT; loss++)
		sum += run_loss_is_lost[loss] ? service->losses[loss] : 0;
	return sum;
}

/* Sum the programs' times; not known unless all are, as a part is not the cost. */
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
	autoitems struct items items = items_begin(page, "observer", LABEL_COLUMNS);
	struct run_number run_ns = all_run_ns(run->cost);
	uint64_t exchanges = 0;

	for (size_t i = 0; i < run->service_count; i++)
		exchanges += run->services[i].exchanges;
	items_time(&items, "CPU", (double)run->cost->cpu_ns);
	if (run->duration_ns)
		items_add(&items, "%s of a core",
			  as_share(100 * (double)run->cost->cpu_ns / (double)run->duration_ns));
	items_add(&items, "memory %s", as_bytes(run->cost->resident_bytes));
	items_add(&items, "BPF maps %s", as_bytes(run->cost->map_bytes));
	if (run->cost->sharing_cpus.value > 1)
		items_add(&items, "%s CPUs share counts", as_count(run->cost->sharing_cpus.value));
	if (run_ns.known && exchanges)
		items_add(&items, "BPF %s per exchange",
			  as_time((double)run_ns.value / (double)exchanges));
}

/* Print the host's properties, on which the programs' times depend. */
static void report_machine(const struct page *page, const struct run_machine *machine)
{
	autoitems struct items items = items_begin(page, "machine", LABEL_COLUMNS);
	autofree char *mitigations = run_machine_mitigations(machine);

	items_add(&items, "mitigations: %s", mitigations ? mitigations : "");
	items_add(&items, "clock source: %s", run_machine_clock(machine));
	items_add(&items, "virtualisation: %s", run_machine_virtualisation(machine));
}

static void report_programs(const struct page *page, const struct run_cost *cost)
{
	for (size_t i = 0; i < cost->program_count; i++) {
		const struct run_program *program = &cost->programs[i];

		if (!program->runs.known || !program->run_ns.known || !program->runs.value)
			continue;
		page_left(page, LABEL_COLUMNS, "%s", "");
		page_left(page, 26, "%.*s", (int)sizeof(program->name), program->name);
		page_right(page, 16, "%s", as_count(program->runs.value));
		page_left(page, 0, " runs");
		page_right(page, 8, "%.0f",
			   (double)program->run_ns.value / (double)program->runs.value);
		page_left(page, 0, " ns/run");
		fputc('\n', page->file);
	}
}

void report_cost(const struct page *page, const struct run *run)
{
	if (page->verbose) {
		fputc('\n', page->file);
		report_summary(page, run);
		if (all_run_ns(run->cost).known && run_machine_known(&run->cost->machine))
			report_machine(page, &run->cost->machine);
		report_programs(page, run->cost);
	}
	for (size_t i = 0; i < run->cost->program_count; i++) {
		const struct run_program *program = &run->cost->programs[i];

		if (program->recursion_misses)
			page_counted(page, "caveats", program->recursion_misses,
				     "recursion misses: events that %.*s did not see",
				     (int)sizeof(program->name), program->name);
	}
}

/* With --all-netns: print how many namespaces there were, and which data some of them lack. */
static void report_namespaces(const struct page *page, const struct run_namespaces *namespaces)
{
	struct items items;

	if (!namespaces->observed)
		return;
	items = items_begin(page, "namespaces", LABEL_COLUMNS);
	items_count(&items, "network namespaces", namespaces->observed);
	items_some(&items, "ended", namespaces->ended);
	if (namespaces->visited)
		items_add(&items, "the last reading took %s for each of %ju with services",
			  as_time((double)namespaces->visit_ns / (double)namespaces->visited),
			  (uintmax_t)namespaces->visited);
	items_end(&items);
	if (namespaces->not_entered)
		page_counted(page, "caveats", namespaces->not_entered,
			     "network namespaces not entered: %s: connections older than the "
			     "observation and gauges are not known there",
			     namespaces->reason);
	if (namespaces->left_out)
		page_counted(page, "caveats", namespaces->left_out,
			     "network namespaces beyond the maximum: they are not visited, either");
	if (namespaces->unseen_processes)
		page_counted(page, "caveats", namespaces->unseen_processes,
			     "processes whose network namespace may not be looked at: there may be "
			     "more namespaces");
}

void report_slots(const struct page *page, const struct run *run)
{
	const struct run_reclaimed *reclaimed = &run->reclaimed;

	report_namespaces(page, &run->namespaces);
	if (run->services_dropped || run->connections_dropped)
		page_counted(page, "caveats", run->services_dropped,
			     "services dropped: no slot was left, %s of their connections were not "
			     "observed",
			     as_count(run->connections_dropped));
	if (reclaimed->services)
		page_counted(
			page, "caveats", reclaimed->services,
			"services ended or idle, whose slots others needed: %s connections, %s "
			"exchanges, in none of the services here",
			as_count(reclaimed->accepted), as_count(reclaimed->exchanges));
	if (run->listeners_idle)
		page_counted(
			page, "caveats", run->listeners_idle,
			"listeners that nobody has used: observed from their first connection on");
}
