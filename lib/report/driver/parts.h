/* SPDX-License-Identifier: MIT */
/* The parts of a text report about the driver, a function each. */
#ifndef LIB_REPORT_DRIVER_PARTS_H
#define LIB_REPORT_DRIVER_PARTS_H

#include "report/page/print.h"
#include "sojourn/sweep.h"

/* A self-contained sentence. */
struct report_verdict {
	char text[768];
	/* The part with most of the mean time at a service, and its share; NULL: not known. */
	const char *part;
	char upstream[SHORT_TEXT + 96]; /* that takes most of this part; "": none */
	double percent;
	double total_ns;
};

/* ports.c: return the port of the driver's URL, or its scheme's; 0: not known. */
uint16_t report_target_port(const struct run_driver *driver);

struct report_ports {
	uint16_t list[RUN_ROWS_MAX];
	size_t count;
};

/* The ports that the driver was sent to. */
struct report_ports report_target_ports(const struct run_driver *driver);
bool report_has_port(const struct report_ports *ports, uint16_t port);

/* notes.c: a sentence on requests missing in percentiles. */
struct report_note {
	char text[256];
};

#define REPORT_NOTES 5U
/* Return the number of notes, with those on interrupted runs and lost members. */
size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES]);
/*
 * Return how many requests at @service were never answered, and how long they had waited at least. False:
 * too few to move a shown percentile.
 */
bool report_service_note(const struct run_service *service, struct report_note *ret_note);
void report_print_service_note(const struct page *page, const struct run_service *service);
void report_print_notes(const struct page *page, const struct run_driver *driver);

/* failures.c: return whether most requests failed or were redirected: no time matters then. */
bool report_headline(const struct run_driver *driver, struct report_verdict *ret_verdict);
/* Print the sentences on failures and redirects, failed assertions, and each kind of failure. */
void report_failures(const struct page *page, const struct run_driver *driver, char *const *broken);

/* distribution.c: return whether @h has enough different values for a picture. */
#define REPORT_DISTRIBUTION_ROWS 8U
bool report_has_distribution(const struct histogram *h);
/* Draw it in at most @rows, 2 to REPORT_DISTRIBUTION_ROWS. */
void report_distribution(const struct page *page, const struct histogram *h, unsigned int rows);

/* driver.c: "GET http://… · 64 connections …". */
void report_target(const struct page *page, const struct run *run);
/* The very first line, if the driver limited the result. */
void report_limited(const struct page *page, const struct run_driver *driver);
/* Under a rate: latency from the intended start, printed before the round trip. */
void report_response_time(const struct page *page, const struct run_driver *driver);
/* The round trip's first line, with the rate: the tree's root, if there is one. */
void report_round_trip(const struct page *page, const struct run_driver *driver);
/* Further percentiles, connect, status, CPU. */
void report_driver(const struct page *page, const struct run *run);
/* One line in place of report_driver(): percentiles that the first line lacks. */
void report_beyond(const struct page *page, const struct run_driver *driver);
/* How far apart the members of a fleet began, at most, and how well their clocks were compared. */
struct report_spread {
	size_t members;
	uint64_t skew_ns, doubt_ns;
};

void report_spread_add(struct report_spread *spread, const struct run_fleet_member *members,
		       size_t count);
/* "3 members", "began within 90 us", "clocks compared to within 40 us". */
void report_spread_items(struct items *items, const struct report_spread *spread);

/* The rows that belong to the result: steps, targets, statuses, datagrams, drivers, fleet. */
void report_driver_rows(const struct page *page, const struct run *run);

/*
 * joined.c: part @i of joined exchanges, or of sums of some, for all forms of the report. A name
 * that starts with blanks divides the part above. False: not in this run.
 */
struct report_part {
	char name[SHORT_TEXT];
	uint64_t sum_ns;
	double share; /* of the user's wait, percent */
};

#define REPORT_PARTS 11U
bool report_part(const struct run_joined *joined, const struct run_parts *sums, size_t i,
		 struct report_part *ret_part);
/*
 * joined.c: write "service 91 %, socket queue 8 %": parts of at least 0.5 % of @sums, the largest
 * first, as many as fit @columns and @size bytes.
 */
void report_shares(const struct run_joined *joined, const struct run_parts *sums,
		   unsigned int columns, size_t size, char *ret_text);
/* joined.c: "p99", "p99.9". */
const char *report_percentile_name(uint32_t per_mille, char buffer[static SHORT_TEXT]);
/* joined.c: which parts dominate the slow requests, and the slowest; nothing without samples. */
void report_joined(const struct page *page, const struct run *run);

/* sweep.c: the very first line, if the driver limited a step: the plateau may be its own. */
void report_sweep_limited(const struct page *page, const struct run *run);
/* sweep.c: the conclusion and a table of the steps; nothing without a sweep. */
void report_sweep(const struct page *page, const struct run *run);

#endif
