// SPDX-License-Identifier: MIT
/* `sojourn doctor`, the top layer: looks once or again and again, prints, says how it is. */
#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "doctor_look.h"
#include "reserve.h"
#include "resource_events.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"

static int print(const struct doctor_options *options, const struct doctor_report *report)
{
	time_t at = (time_t)(report->wall_ns / NSEC_PER_SEC);
	char when[32];
	struct tm tm;

	if (options->json)
		return doctor_print_json(report, options->watch, stdout);
	if (options->watch) {
		strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&at, &tm));
		printf("---- %s ----\n", when);
	}
	return doctor_print_text(report, stdout);
}

/* One look, printed. 0 or -errno; -EINTR: nothing was printed. */
static int look(struct doctor *doctor, const struct doctor_options *options,
		enum severity *ret_worst)
{
	struct doctor_report report;
	int r = doctor_look(doctor, options->watch ? options->interval_ns : options->sample_ns,
			    &report);

	if (r == -EINTR)
		return r;
	if (r == -ENODATA)
		return log_errno(-EPERM, "cannot look into any of the network namespaces");
	if (r < 0)
		return log_errno(r, "cannot look");
	r = print(options, &report);
	if (r < 0)
		log_errno(r, "cannot print the report");
	else
		*ret_worst = diagnose_worst(&report.findings);
	doctor_report_free(&report);
	return r;
}

int doctor_main(int argc, char **argv)
{
	CLEANUP(cleanup_resource_events_close) struct resource_events *events = NULL;
	CLEANUP(cleanup_doctor_close) struct doctor *doctor = NULL;
	enum severity worst = SEVERITY_NONE;
	struct doctor_options options;
	int r = doctor_parse(argc, argv, &options);

	if (r < 0)
		return r == -ECANCELED ? EXIT_SUCCESS : DOCTOR_USAGE;
	log_open("sojourn doctor", false);
	r = doctor_open(&options, &doctor);
	if (r == -EINVAL)
		return DOCTOR_USAGE;
	if (r < 0) {
		log_errno(r, "cannot begin");
		return DOCTOR_FAILED;
	}
	if (options.watch || options.syscalls) {
		r = resource_events_open(options.syscalls, -1, &events);
		doctor_watch(doctor, events, r);
	}
	reserve_fill();
	do {
		r = look(doctor, &options, &worst);
		/* Who stays may see more the next time. */
	} while (r != -EINTR && r != -EIO && options.watch);
	if (r < 0 && r != -EINTR)
		return DOCTOR_FAILED;
	return (int)worst; /* enum doctor_exit counts as enum severity does */
}
