// SPDX-License-Identifier: MIT
/* The services that have metrics, and the labels of these. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "sojourn/run_sum.h"

void metrics_add_label(struct metrics_labels *labels, const char *name, const char *value)
{
	labels->list[labels->count++] = (struct metrics_label){name, value};
}

void metrics_add_known(struct metrics_labels *labels, const char *name, const char *value)
{
	if (*value)
		metrics_add_label(labels, name, value);
}

struct metrics_labels metrics_labels_of(const struct run_service *service,
					struct metrics_numbers *ret_numbers)
{
	struct metrics_labels labels = {.count = 0};

	snprintf(ret_numbers->port, sizeof(ret_numbers->port), "%u", service->port);
	snprintf(ret_numbers->netns, sizeof(ret_numbers->netns), "%" PRIu32, service->netns);
	metrics_add_label(&labels, "protocol", service->protocol);
	metrics_add_label(&labels, "port", ret_numbers->port);
	metrics_add_label(&labels, "netns", ret_numbers->netns);
	metrics_add_known(&labels, "namespace", service->place.pod_namespace);
	metrics_add_known(&labels, "pod", service->place.pod);
	metrics_add_known(&labels, "container", service->place.container);
	metrics_add_known(&labels, "container_id", service->place.container_id);
	return labels;
}

/* Return whether the service is the last one at its port: earlier ones had the same labels. */
static bool is_exported(const struct run *run, size_t index)
{
	const struct run_service *service = &run->services[index];

	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].turn > service->turn &&
		    run_same_port(&run->services[i], service))
			return false;
	return true;
}

bool metrics_next_service(const struct run *run, size_t *index)
{
	while (*index < run->service_count && !is_exported(run, *index))
		++*index;
	return *index < run->service_count;
}
