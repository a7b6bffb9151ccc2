/* SPDX-License-Identifier: MIT */
/* What a doctor keeps between its readings: for doctor_look.c (takes them) and doctor_conclude.c. */
#ifndef OBSERVER_DOCTOR_STATE_H
#define OBSERVER_DOCTOR_STATE_H

#include <signal.h>

#include "doctor_look.h"
#include "doctor_targets.h"
#include "resource_events.h"

struct doctor {
	const struct doctor_options *options;
	struct doctor_targets targets;
	struct resource_pair *pairs;			 /* one per target */
	struct resource_numbers host_before, host_after; /* read in our own namespace */
	struct process_list processes;
	unsigned int points;		/* of the trend of their descriptors */
	uint64_t point_ns;		/* between two of them */
	uint64_t next_ns;		/* when the next one is due */
	struct resource_events *events; /* whose they are, it outlives us; NULL: not watched */
	int events_error;
	struct events_reading events_before, events_after;
	int home_fd;
	enum socket_source source;
	sigset_t stop;
};

__attribute__((format(printf, 2, 3))) void doctor_note(struct doctor_report *report,
						       const char *format, ...);

/* Makes resources, findings and notes of two readings. 0, -ENODATA without any, or -ENOMEM. */
int doctor_conclude(struct doctor *doctor, struct doctor_report *report);

#endif
