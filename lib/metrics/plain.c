// SPDX-License-Identifier: MIT
/* The metrics of the observation as a whole, which have no labels: its losses, its namespaces and its cost. */
#include "output.h"

void metrics_tell_plain(const struct run *run, const struct metrics_output *out)
{
	static const struct metrics_labels no_labels;
	const struct run_namespaces *namespaces = &run->namespaces;
	const struct run_cost *cost = run->cost ? run->cost : &(struct run_cost){0};
	const struct {
		struct metrics_family family;
		bool known;
		uint64_t value;
	} metrics[] = {
		{{"sojourn_services_dropped", METRICS_COUNTER, METRICS_ONE,
		  "Services that found no slot when they had connections."},
		 true,
		 run->services_dropped},
		{{"sojourn_connections_dropped", METRICS_COUNTER, METRICS_ONE,
		  "Connections that were not observed, because their service had no slot."},
		 true,
		 run->connections_dropped},
		{{"sojourn_services_reclaimed", METRICS_COUNTER, METRICS_ONE,
		  "Services that gave their slots to others: they have no metrics of their own any "
		  "more."},
		 true,
		 run->reclaimed.services},
		{{"sojourn_reclaimed_exchanges", METRICS_COUNTER, METRICS_ONE,
		  "Their exchanges, all together."},
		 true,
		 run->reclaimed.exchanges},
		{{"sojourn_listeners_idle", METRICS_GAUGE, METRICS_ONE,
		  "Listeners without a slot, since nobody has used them."},
		 true,
		 run->listeners_idle},
		{{"sojourn_observer_events_missed", METRICS_COUNTER, METRICS_ONE,
		  "Events that a BPF program did not see, because it was running already."},
		 run->cost,
		 run_cost_misses(cost)},
		{{"sojourn_observer_cpu_seconds", METRICS_COUNTER, METRICS_SECONDS,
		  "The observer's CPU time in user space and system calls."},
		 run->cost,
		 cost->cpu_ns},
		{{"sojourn_observer_resident_bytes", METRICS_GAUGE, METRICS_BYTES,
		  "The observer's peak resident set."},
		 run->cost,
		 cost->resident_bytes},
		{{"sojourn_observer_map_bytes", METRICS_GAUGE, METRICS_BYTES,
		  "Memory of its BPF maps."},
		 run->cost,
		 cost->map_bytes},
		{{"sojourn_network_namespaces", METRICS_GAUGE, METRICS_ONE,
		  "Network namespaces that are observed, with --all-netns."},
		 namespaces->observed,
		 namespaces->observed},
		{{"sojourn_network_namespaces_unvisited", METRICS_GAUGE, METRICS_ONE,
		  "Network namespaces that could not be entered, or were too many: their gauges "
		  "are not known."},
		 namespaces->observed,
		 namespaces->not_entered + namespaces->left_out},
		{{"sojourn_network_namespaces_visit_seconds", METRICS_GAUGE, METRICS_SECONDS,
		  "Time that the last reading took to visit the sockets of all."},
		 namespaces->observed,
		 namespaces->visit_ns},
	};

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		if (!metrics[i].known)
			continue;
		out->family(out->context, &metrics[i].family);
		out->number(out->context, &no_labels, metrics[i].value);
	}
}
