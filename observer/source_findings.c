// SPDX-License-Identifier: MIT
/* The doctor's findings as the run document has them; see source_findings.h. */
#include "source_findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_look.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/units.h"

struct source_findings {
	struct doctor_options options;
	struct doctor *doctor;
};

int source_findings_begin(const char *netns, struct resource_events *events, int events_error,
			  struct source_findings **ret_source)
{
	CLEANUP(cleanup_source_findings_end)
	struct source_findings *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->options.netns = netns;
	r = doctor_open(&source->options, &source->doctor);
	if (r < 0)
		return r;
	doctor_watch(source->doctor, events, events_error);
	r = doctor_begin(source->doctor);
	if (r < 0)
		return r;
	*ret_source = TAKE_PTR(source);
	return 0;
}

void source_findings_end(struct source_findings *source)
{
	if (!source)
		return;
	doctor_close(source->doctor);
	free(source);
}

void source_findings_point(struct source_findings *source)
{
	doctor_point(source->doctor, FINDINGS_POINT_NS);
}

/* ---- to the document ---- */

static int copy(char **to, const char *from)
{
	if (!from || !*from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

static struct run_number number(double value)
{
	if (!isfinite(value) || value < 0)
		return (struct run_number){};
	return (struct run_number){true, (uint64_t)(value + 0.5)};
}

static int add_evidence(const struct resource *resource, struct run_finding *finding)
{
	int r = 0;

	for (size_t i = 0; !r && i < resource->fact_count; i++) {
		char text[256];

		if (resource->facts[i].value == 0 && i)
			continue;
		doctor_fact(&resource->facts[i], text, sizeof(text));
		r = run_add_text(&finding->evidence, text);
	}
	return r;
}

static int add_owners(const struct resource *resource, struct run_finding *finding)
{
	for (size_t i = 0; i < resource->owner_count; i++) {
		const struct resource_owner *from = &resource->owners[i];
		struct run_owner *to = run_add_owner(finding);

		if (!to)
			return -ENOMEM;
		to->pid = from->pid;
		memcpy(to->comm, from->comm, sizeof(to->comm));
		memcpy(to->unit, from->unit, sizeof(to->unit));
		if (from->sockets)
			to->sockets = number(from->sockets);
	}
	return 0;
}

/* What the numbers predict, then what it means. */
static int add_outlook(const struct finding *from, struct run_finding *to)
{
	const char *numbers = from->resource.outlook, *meaning = from->rule->outlook;

	if (!meaning)
		return copy(&to->outlook, numbers);
	if (asprintf(&to->outlook, "%s%s%s", numbers, *numbers ? ": " : "", meaning) < 0) {
		to->outlook = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int add_texts(const struct finding *from, struct run_finding *to)
{
	char command[256], link[128];
	int r = copy(&to->what, from->rule->what);

	if (!r)
		r = add_evidence(&from->resource, to);
	if (!r)
		r = add_outlook(from, to);
	if (!r)
		r = copy(&to->command, doctor_command(from, command, sizeof(command)));
	if (!r)
		r = copy(&to->change, from->rule->change);
	if (!r)
		r = copy(&to->risk, from->rule->risk);
	if (!r)
		r = copy(&to->link, diagnose_link(from->rule, link, sizeof(link)));
	return r;
}

static int add_finding(const struct finding *from, struct run *run)
{
	const struct resource *resource = &from->resource;
	struct run_finding *to = run_add_finding(run);
	int r;

	if (!to)
		return -ENOMEM;
	snprintf(to->id, sizeof(to->id), "%s", from->rule->id);
	snprintf(to->severity, sizeof(to->severity), "%s", severity_names[from->severity]);
	snprintf(to->resource, sizeof(to->resource), "%s", resource_names[resource->kind]);
	memcpy(to->object, resource->object, sizeof(to->object));
	to->port = resource->port;
	to->netns = resource->netns;
	to->used = number(resource->used);
	if (resource->capacity > 0)
		to->capacity = number(resource->capacity);
	to->ends_in_ns = number(resource->seconds_left * (double)NSEC_PER_SEC);
	r = add_texts(from, to);
	return r ? r : add_owners(resource, to);
}

static int add_notes(const struct doctor_report *report, struct run *run)
{
	int r = 0;

	run->not_seen = calloc(1, sizeof(*run->not_seen)); /* looked, and nothing is unseen */
	if (!run->not_seen)
		return -ENOMEM;
	for (size_t i = 0; !r && i < report->note_count; i++)
		r = run_add_text(&run->not_seen, report->notes[i]);
	return r;
}

int source_findings_read(struct source_findings *source, struct run *run)
{
	struct doctor_report report;
	int r = doctor_end(source->doctor, &report);

	if (r == -ENODATA)
		return run_add_text(&run->not_seen, "the network namespace may not be entered");
	if (r < 0)
		return r;
	for (size_t i = 0; !r && i < report.findings.count; i++)
		r = add_finding(&report.findings.entries[i], run);
	if (!r)
		r = add_notes(&report, run);
	doctor_report_free(&report);
	return r;
}
