/* SPDX-License-Identifier: MIT */
/* The parts of a text report, a function each, which text.c puts in order. Those declared here join both sides. */
#ifndef LIB_REPORT_PARTS_H
#define LIB_REPORT_PARTS_H

#include "report/driver/parts.h"
#include "report/observed/parts.h"

/* tree.c: how the driver's round trip divides at @service; both have requests. */
void report_tree(const struct page *page, const struct run *run, const struct run_service *service);

/* many.c: "tcp 127.0.0.1:8080 nginx", or with its pod or container in place of the process. */
#define REPORT_NAME 448
const char *report_name(const struct run_service *service, char buffer[static REPORT_NAME]);
/*
 * Print at most @most services in a row each. Sort @services: those that may hang first, then those whose
 * requests took the most time in all.
 */
void report_many(const struct page *page, const struct run *run,
		 const struct run_service **services, size_t count, size_t most);

/* hints.c: a line for each hint on @service. */
void report_print_hints(const struct page *page, const struct run *run,
			const struct run_service *service);

/*
 * driven.c: return whether no service saw all requests: several targets, or one port on several
 * hosts.
 */
bool report_is_split(const struct run *run);

/*
 * verdict.c: where most time of the driver's requests at @service went, or why that is not known;
 * @service is NULL if not known. False: nothing to say.
 */
bool report_verdict(const struct run *run, const struct run_service *service,
		    struct report_verdict *ret_verdict);
/* findings.c: resources running out on the observer's host, if it looked. */
void report_findings(const struct page *page, const struct run *run);
/* The resources that the doctor could not see, and why. */
void report_not_seen(const struct page *page, const struct run *run);
/* findings.c: that @service answered nothing at the end, although requests waited; false: it did. */
bool report_hangs(const struct run *run, const struct run_service *service,
		  struct report_verdict *ret_verdict);
/*
 * hosts.c: which host of several, or pod or container, is the slow one, or why that is not known. False: their
 * services cannot be compared, or one saw all requests of the driver.
 */
bool report_hosts_verdict(const struct run *run, struct report_verdict *ret_verdict);
/* hosts.c: a row for each of these, at most @most, and their total. */
void report_hosts(const struct page *page, const struct run *run, size_t most);

/* compared.c: the services in these rows; no ports if there are no such rows. */
struct report_compared {
	struct report_ports ports;
	bool joined; /* only those of which exchanges were joined */
	bool of_workload;
	char workload[RUN_PLACE_NAME]; /* run_place_workload(), then of all */
};

/* Of a document without a driver: those in several places that have most exchanges. */
struct report_compared report_common_services(const struct run *run);
/* Those that the driver's requests went to. */
struct report_compared report_target_services(const struct run *run);
/* driven.c: one of both, or none if one service saw all of the driver's requests. */
struct report_compared report_compared(const struct run *run);
bool report_is_compared(const struct report_compared *compared, const struct run *run,
			const struct run_service *service);
/* Return the joined exchanges of the service's host, pod or container; NULL: none. */
const struct run_joined_step *report_joined_of(const struct run *run,
					       const struct run_service *service);
/* Return whether the driver's requests went to several hosts, pods or containers. */
bool report_is_spread(const struct run *run);

/* The verdict on all requests observed at @service; false: nothing to say. */
bool report_service_verdict(const struct run *run, const struct run_service *service,
			    struct report_verdict *ret_verdict);
void report_print_verdict(const struct page *page, const struct report_verdict *verdict);

#endif
