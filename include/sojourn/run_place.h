/* SPDX-License-Identifier: MIT */
/* Pods and containers, and places that are called: part of the run document in memory (run.h). */
#ifndef SOJOURN_RUN_PLACE_H
#define SOJOURN_RUN_PLACE_H

#include <stdint.h>

#include "sojourn/run_values.h"

/* Where a service's processes run. Empty: they run in none, or it is not known. */
struct run_place {
	char cgroup[512];      /* the path; of several the part that they share */
	char container_id[72]; /* the runtime's number */
	char container[128];   /* the runtime's name of it, or its name in the pod */
	char pod_uid[40];
	char pod[256];
	char pod_namespace[64];
};

/* "pod shop/web-1", "container web"; "" if it runs in neither. */
#define RUN_PLACE_NAME 352
const char *run_place_name(const struct run_place *place, char buffer[static RUN_PLACE_NAME]);

/*
 * Write which of the pods or containers that do the same work this is: "shop/web" of "web-7d9f8b6c5d-x2x4z" or
 * "web-0" in the namespace shop, "web" of the container "web-1". "a pod" or "a container" if its name is not known; ""
 * if there is neither. Kubernetes appends "-", letters without vowels and digits (apimachinery's util/rand), or a
 * number; Docker Compose a number.
 */
const char *run_place_workload(const struct run_place *place, char buffer[static RUN_PLACE_NAME]);

/* A place to which the service's processes connect. */
struct run_call {
	char towards[56];     /* "10.0.0.5:9000", "[2001:db8::1]:9000" */
	uint64_t connections; /* of the service's processes, in the period */
	/* As in struct run_upstream. */
	struct run_number serves_too;
};

#endif
