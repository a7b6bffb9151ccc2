/* SPDX-License-Identifier: MIT */
/* The metrics of the observation as a whole, which have no labels: its losses, its namespaces and its cost. */
#include "output.h"

static uint64_t get_dropped(const struct run *run)
{
	return run->services_dropped;
}

static uint64_t get_connections_dropped(const struct run *run)
{
	return run->connections_dropped;
}

static uint64_t get_reclaimed(const struct run *run)
{
	return run->reclaimed.services;
}

static uint64_t get_reclaimed_exchanges(const struct run *run)
{
	return run->reclaimed.exchanges;
}

static uint64_t get_namespaces(const struct run *run)
{
	return run->namespaces.observed;
}

static uint64_t get_not_entered(const struct run *run)
{
	return run->namespaces.not_entered + run->namespaces.left_out;
}

static uint64_t get_visit(const struct run *run)
{
	return run->namespaces.visit_ns;
}

static bool has_cost(const struct run *run)
{
	return run->cost;
}

static bool has_namespaces(const struct run *run)
{
	return run->namespaces.observed;
}

static uint64_t get_idle(const struct run *run)
{
	return run->listeners_idle;
}

static uint64_t get_misses(const struct run *run)
{
	uint64_t misses = 0;

	for (size_t i = 0; i < run->cost->program_count; i++)
		misses += run->cost->programs[i].recursion_misses;
	return misses;
}

static uint64_t get_cpu(const struct run *run)
{
	return run->cost->cpu_ns;
}

static uint64_t get_resident(const struct run *run)
{
	return run->cost->resident_bytes;
}

static uint64_t get_maps(const struct run *run)
{
	return run->cost->map_bytes;
}

static const struct {
	struct metrics_family family;
	bool (*known)(const struct run *run); /* NULL: always */
	uint64_t (*get)(const struct run *run);
} plain_metrics[] = {
	{{"sojourn_services_dropped", METRICS_COUNTER, METRICS_ONE,
	  "Services that found no slot when they had connections."},
	 NULL,
	 get_dropped},
	{{"sojourn_connections_dropped", METRICS_COUNTER, METRICS_ONE,
	  "Connections that were not observed, because their service had no slot."},
	 NULL,
	 get_connections_dropped},
	{{"sojourn_services_reclaimed", METRICS_COUNTER, METRICS_ONE,
	  "Services that gave their slots to others: they have no metrics of their own any more."},
	 NULL,
	 get_reclaimed},
	{{"sojourn_reclaimed_exchanges", METRICS_COUNTER, METRICS_ONE,
	  "Their exchanges, all together."},
	 NULL,
	 get_reclaimed_exchanges},
	{{"sojourn_listeners_idle", METRICS_GAUGE, METRICS_ONE,
	  "Listeners without a slot, since nobody has used them."},
	 NULL,
	 get_idle},
	{{"sojourn_observer_events_missed", METRICS_COUNTER, METRICS_ONE,
	  "Events that a BPF program did not see, because it was running already."},
	 has_cost,
	 get_misses},
	{{"sojourn_observer_cpu_seconds", METRICS_COUNTER, METRICS_SECONDS,
	  "The observer's CPU time in user space and system calls."},
	 has_cost,
	 get_cpu},
	{{"sojourn_observer_resident_bytes", METRICS_GAUGE, METRICS_BYTES,
	  "The observer's peak resident set."},
	 has_cost,
	 get_resident},
	{{"sojourn_observer_map_bytes", METRICS_GAUGE, METRICS_BYTES, "Memory of its BPF maps."},
	 has_cost,
	 get_maps},
	{{"sojourn_network_namespaces", METRICS_GAUGE, METRICS_ONE,
	  "Network namespaces that are observed, with --all-netns."},
	 has_namespaces,
	 get_namespaces},
	{{"sojourn_network_namespaces_unvisited", METRICS_GAUGE, METRICS_ONE,
	  "Network namespaces that could not be entered, or were too many: their gauges are not "
	  "known."},
	 has_namespaces,
	 get_not_entered},
	{{"sojourn_network_namespaces_visit_seconds", METRICS_GAUGE, METRICS_SECONDS,
	  "Time that the last reading took to visit the sockets of all."},
	 has_namespaces,
	 get_visit},
};

void metrics_tell_plain(const struct run *run, const struct metrics_output *out)
{
	static const struct metrics_labels none;

	for (size_t i = 0; i < ARRAY_SIZE(plain_metrics); i++) {
		if (plain_metrics[i].known && !plain_metrics[i].known(run))
			continue;
		out->family(out->context, &plain_metrics[i].family);
		out->number(out->context, &none, plain_metrics[i].get(run));
	}
}
