// SPDX-License-Identifier: MIT
/* A doctor's report as JSON, schema sojourn.doctor/1 (docs/diagnoses.md); see doctor_look.h. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "doctor_look.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

#define SCHEMA "sojourn.doctor/1"

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* Whole numbers as such: 26000, not 26000.0. */
static json_t *number(double value)
{
	if (!isfinite(value))
		return json_null();
	if (value == (double)(json_int_t)value)
		return json_integer((json_int_t)value);
	return json_real(value);
}

static json_t *facts_json(const struct resource *resource)
{
	json_t *facts = json_array();

	for (size_t i = 0; i < resource->fact_count; i++) {
		const struct resource_fact *fact = &resource->facts[i];

		json_array_append_new(facts, json_pack("{s:s, s:o, s:s, s:s}", "name", fact->name,
						       "value", number(fact->value), "unit",
						       fact->unit, "source", fact->source));
	}
	return facts;
}

static json_t *owners_json(const struct resource *resource)
{
	json_t *owners = json_array();

	for (size_t i = 0; i < resource->owner_count; i++) {
		const struct resource_owner *owner = &resource->owners[i];

		/* A name is whatever bytes its process chose. */
		json_t *comm = json_string(owner->comm);

		json_array_append_new(
			owners,
			json_pack("{s:i, s:o, s:o, s:i, s:o}", "pid", (int)owner->pid, "comm",
				  comm ? comm : json_null(), "unit", text_or_null(owner->unit),
				  "sockets", (int)owner->sockets, "did", text_or_null(owner->did)));
	}
	return owners;
}

static json_t *resource_json(const struct resource *resource)
{
	json_t *object = json_string(resource->object);

	return json_pack("{s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "resource",
			 resource_names[resource->kind], "object", object ? object : json_null(),
			 "netns", resource->netns ? json_integer(resource->netns) : json_null(),
			 "netns_name", text_or_null(resource->netns_name), "port",
			 (int)resource->port, "used", number(resource->used), "capacity",
			 resource->capacity > 0 ? number(resource->capacity) : json_null(),
			 "deepest", number(resource->deepest), "growth_per_second",
			 number(resource->growth), "seconds_left", number(resource->seconds_left),
			 "owners", owners_json(resource));
}

static json_t *finding_json(const struct finding *finding)
{
	const struct rule *rule = finding->rule;
	json_t *object = resource_json(&finding->resource), *rest;
	char command[256], link[128];

	rest = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:{s:o, s:s, s:s}, s:s}", "id", rule->id,
			 "severity", severity_names[finding->severity], "what", rule->what,
			 "evidence", facts_json(&finding->resource), "prediction",
			 text_or_null(finding->resource.outlook), "consequence",
			 text_or_null(rule->outlook), "remedy", "command",
			 text_or_null(doctor_command(finding, command, sizeof(command))), "change",
			 rule->change, "risk", rule->risk, "link",
			 diagnose_link(rule, link, sizeof(link)));
	if (object && rest)
		json_object_update(object, rest);
	json_decref(rest);
	return object;
}

static json_t *looked_at(const struct doctor_report *report)
{
	return json_pack("{s:i, s:I, s:i, s:I}", "namespaces", (int)report->namespaces, "sockets",
			 (json_int_t)report->sockets, "descriptor_walks", (int)report->walks,
			 "cpu_ns", (json_int_t)report->cpu_ns);
}

static json_t *report_json(const struct doctor_report *report)
{
	static const char *const states[] = {"healthy", "warnings", "critical"};
	json_t *findings = json_array(), *resources = json_array(), *notes = json_array();
	autofree char *when = run_format_time(report->wall_ns);
	char host[256] = "";

	for (size_t i = 0; i < report->findings.count; i++)
		json_array_append_new(findings, finding_json(&report->findings.entries[i]));
	for (size_t i = 0; i < report->resources.count; i++)
		json_array_append_new(resources, resource_json(&report->resources.entries[i]));
	for (size_t i = 0; i < report->note_count; i++)
		json_array_append_new(notes, text_or_null(report->notes[i]));
	gethostname(host, sizeof(host) - 1);
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "schema", SCHEMA, "host",
			 host, "at", when, "sample_seconds", number(report->seconds), "status",
			 states[diagnose_worst(&report->findings)], "findings", findings,
			 "resources", resources, "not_seen", notes, "looked_at", looked_at(report));
}

int doctor_print_json(const struct doctor_report *report, bool one_line, FILE *file)
{
	json_t *root = report_json(report);
	int r;

	if (!root)
		return -ENOMEM;
	r = json_dumpf(root, file, one_line ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(root);
	fputc('\n', file);
	return r || fflush(file) || ferror(file) ? -EIO : 0;
}
