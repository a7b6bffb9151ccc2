/* SPDX-License-Identifier: MIT */
/* Takes the readings of a look at one or all network namespaces, and makes findings of them. */
#ifndef OBSERVER_DOCTOR_LOOK_H
#define OBSERVER_DOCTOR_LOOK_H

#include "diagnose.h"
#include "doctor.h"

#define DOCTOR_NOTES 16

/* Everything that is printed: made by doctor_look(), rendered by doctor_text.c, doctor_json.c. */
struct doctor_report {
	uint64_t wall_ns;
	double seconds; /* the sample; 0: none */
	struct finding_list findings;
	struct resource_list resources;
	char notes[DOCTOR_NOTES][192]; /* what could not be seen */
	size_t note_count;
	size_t namespaces;
	uint64_t sockets;   /* looked at, both readings */
	unsigned int walks; /* over all processes' descriptors */
	uint64_t cpu_ns;    /* of this look */
};

struct doctor;

/* Finds the namespaces. 0; -EINVAL: an error was printed about the options; or -errno. */
int doctor_open(const struct doctor_options *options, struct doctor **ret_doctor);
void doctor_close(struct doctor *doctor);
DEFINE_CLEANUP(struct doctor *, doctor_close)

/* Counts failures and names who connects and closes from now on; @error: why @events is NULL. */
struct resource_events;
void doctor_watch(struct doctor *doctor, struct resource_events *events, int error);

/*
 * A look whose sample the caller decides: doctor_begin() takes the first reading, doctor_end() the
 * second, and findings; it may be called again, and then tells of all the time since the begin.
 * doctor_point(), called every @interval_ns meanwhile, makes the trend of processes' descriptors. 0 or
 * -errno, -ENODATA if no namespace may be entered.
 */
int doctor_begin(struct doctor *doctor);
void doctor_point(struct doctor *doctor, uint64_t interval_ns);
int doctor_end(struct doctor *doctor, struct doctor_report *ret_report);

/*
 * Looks for @sample_ns. A second look begins where the first ended. 0, -EINTR when a signal asked
 * to stop, or -errno.
 */
int doctor_look(struct doctor *doctor, uint64_t sample_ns, struct doctor_report *ret_report);
void doctor_report_free(struct doctor_report *report);

/* Renderers. -EIO if it could not be written. */
int doctor_print_text(const struct doctor_report *report, FILE *file);
int doctor_print_json(const struct doctor_report *report, bool one_line, FILE *file);

/* "connected: 260 ports (TCP sockets, inet_diag)" */
char *doctor_fact(const struct resource_fact *fact, char *buffer, size_t size);

/* The rule's command with the finding's own process. NULL if it has none, or none that helps here. */
const char *doctor_command(const struct finding *finding, char *buffer, size_t size);

#endif
