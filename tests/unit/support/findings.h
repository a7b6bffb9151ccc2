/* SPDX-License-Identifier: MIT */
/* Two findings and a sweep with every member set, all numbers different; for runs.c. */
#ifndef UNIT_SUPPORT_FINDINGS_H
#define UNIT_SUPPORT_FINDINGS_H

#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sweep.h"

static inline void support_fill_finding(struct run_finding *finding, uint32_t from)
{
	struct run_owner *owner = ARRAY_APPEND(finding->owners, finding->owner_count);

	if (!owner || run_add_text(&finding->evidence, "connected: 260 ports (inet_diag)") ||
	    run_add_text(&finding->evidence, "TIME_WAIT: 3 ports (inet_diag)"))
		abort();
	finding->host = strdup("other");
	strcpy(finding->id, "ports-cliff");
	strcpy(finding->severity, "warning");
	strcpy(finding->resource, "ephemeral_ports");
	strcpy(finding->object, "10.0.0.1 to 10.0.0.2:80");
	finding->port = (uint16_t)from;
	finding->netns = from + 1;
	strcpy(finding->netns_name, "blue");
	finding->used = (struct run_number){true, from + 2};
	finding->capacity = (struct run_number){true, from + 3};
	finding->ends_in_ns = (struct run_number){true, from + 4};
	finding->what = strdup("too many");
	finding->outlook = strdup("it ends");
	finding->command = strdup("sysctl -w a=b");
	finding->change = strdup("do less");
	finding->risk = strdup("none");
	finding->link = strdup("docs/diagnoses.md#ports-cliff");
	owner->pid = from + 5;
	strcpy(owner->comm, "wrk");
	strcpy(owner->unit, "bench.service");
	strcpy(owner->did, "3 connect() calls");
	owner->sockets = (struct run_number){true, from + 6};
}

/* Fill the further members of the doctor's documents. */
static inline void support_fill_look(struct run *run)
{
	struct run_finding *resource = ARRAY_APPEND(run->resources, run->resource_count);
	struct run_owner *owner =
		resource ? ARRAY_APPEND(resource->owners, resource->owner_count) : NULL;

	run->looked_at = calloc(1, sizeof(*run->looked_at));
	if (!owner || !run->looked_at)
		abort();
	strcpy(resource->resource, "accept_queue");
	strcpy(resource->object, "10.0.0.2:80");
	strcpy(resource->netns_name, "blue");
	resource->port = 2900;
	resource->netns = 2901;
	resource->used = (struct run_number){true, 2902};
	resource->capacity = (struct run_number){true, 2903};
	resource->deepest = (struct run_number){true, 2904};
	resource->growth_per_hour = (struct run_number){true, 2905};
	resource->ends_in_ns = (struct run_number){true, 2906};
	strcpy(owner->comm, "nginx");
	strcpy(owner->did, "left 4 TIME_WAIT");
	owner->pid = 2907;
	strcpy(owner->unit, "nginx.service");
	owner->sockets = (struct run_number){true, 2912};
	*run->looked_at = (struct run_look){2908, 2909, 2910, 2911};
}

static inline void support_fill_findings(struct run *run)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct run_finding *finding = ARRAY_APPEND(run->findings, run->finding_count);

		if (!finding)
			abort();
		support_fill_finding(finding, 10 + 10 * i);
	}
	if (run_add_text(&run->not_seen, "rates"))
		abort();
	support_fill_look(run);
	support_fill_sweep(run);
}

#endif
