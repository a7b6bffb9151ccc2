// SPDX-License-Identifier: MIT
/* A doctor's report for people; see doctor_look.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor_look.h"
#include "sojourn/units.h"

#define WIDTH	96
#define INDENT	12
#define FULLEST 8

/* Text in lines of WIDTH columns behind @label. */
static void print_wrapped(FILE *file, const char *label, const char *text)
{
	int column = fprintf(file, "  %-*s", INDENT - 2, label);

	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > INDENT && column + 1 + length > WIDTH) {
			fprintf(file, "\n%*s", INDENT, "");
			column = INDENT;
		}
		column += fprintf(file, "%s%.*s", column > INDENT ? " " : "", length, text);
		text += length + (text[length] == ' ');
	}
	fputc('\n', file);
}

static void format_value(double value, char *buffer, size_t size)
{
	if (value >= 1 && value == (double)(uint64_t)value)
		units_format_count((uint64_t)value, buffer, size);
	else
		snprintf(buffer, size, "%.*f", value == 0 ? 0 : 2, value);
}

char *doctor_fact(const struct resource_fact *fact, char *buffer, size_t size)
{
	bool port = !strcmp(fact->unit, "port");
	char value[32];

	format_value(fact->value, value, sizeof(value));
	if (port) /* a port's number has no thousands */
		snprintf(value, sizeof(value), "%.0f", fact->value);
	snprintf(buffer, size, "%s: %s%s%s (%s)", fact->name, value,
		 port || !*fact->unit ? "" : " ", port ? "" : fact->unit, fact->source);
	return buffer;
}

/* What is zero says nothing, but for what the finding is about. */
static void print_facts(const struct resource *resource, FILE *file)
{
	const char *label = "evidence";
	char text[256];

	for (size_t i = 0; i < resource->fact_count; i++) {
		if (resource->facts[i].value == 0 && i)
			continue;
		fprintf(file, "  %-*s%s\n", INDENT - 2, label,
			doctor_fact(&resource->facts[i], text, sizeof(text)));
		label = "";
	}
}

static void print_owners(const struct resource *resource, FILE *file)
{
	const char *label = "who";

	for (size_t i = 0; i < resource->owner_count; i++) {
		const struct resource_owner *owner = &resource->owners[i];

		fprintf(file, "  %-*s%s, pid %u", INDENT - 2, label, owner->comm, owner->pid);
		if (owner->unit[0])
			fprintf(file, ", in %s", owner->unit);
		if (owner->sockets)
			fprintf(file, ", %u socket%s", owner->sockets,
				owner->sockets == 1 ? "" : "s");
		if (owner->did[0])
			fprintf(file, ": %s", owner->did);
		fputc('\n', file);
		label = "";
	}
	if (resource->kind == RESOURCE_PORTS && !resource->owner_count)
		print_wrapped(file, label,
			      "no process has such a socket now; TIME_WAIT has no owner");
}

const char *doctor_command(const struct finding *finding, char *buffer, size_t size)
{
	const char *at = finding->rule->command, *mark;
	size_t length = 0;

	if (finding->resource.command_idle)
		return NULL;
	if (!at || !finding->resource.owner_count)
		return at;
	while ((mark = strstr(at, "PID")) && length < size) {
		length += (size_t)snprintf(buffer + length, size - length, "%.*s%u",
					   (int)(mark - at), at, finding->resource.owners[0].pid);
		at = mark + 3;
	}
	if (length < size)
		snprintf(buffer + length, size - length, "%s", at);
	return buffer;
}

static void print_finding(const struct finding *finding, FILE *file)
{
	const struct resource *resource = &finding->resource;
	const struct rule *rule = finding->rule;
	char command[256], link[128];
	const char *shown = doctor_command(finding, command, sizeof(command));

	fprintf(file, "%s  %s  %s",
		finding->severity == SEVERITY_CRITICAL ? "CRITICAL" : "WARNING ", rule->id,
		resource->object);
	if (resource->netns_name[0])
		fprintf(file, "  (network namespace %s)", resource->netns_name);
	fputc('\n', file);
	print_wrapped(file, "what", rule->what);
	print_owners(resource, file);
	print_facts(resource, file);
	if (resource->outlook[0])
		print_wrapped(file, "outlook", resource->outlook);
	if (rule->outlook)
		print_wrapped(file, resource->outlook[0] ? "" : "outlook", rule->outlook);
	if (shown)
		fprintf(file, "  %-*s%s\n", INDENT - 2, "do", shown);
	print_wrapped(file, shown ? "or change" : "change", rule->change);
	print_wrapped(file, "risk", rule->risk);
	print_wrapped(file, "more", diagnose_link(rule, link, sizeof(link)));
	fputc('\n', file);
}

/* ---- the fullest resources ---- */

static double share(const struct resource *resource)
{
	return resource->capacity > 0 ? resource->used / resource->capacity : 0;
}

static const struct resource *next_fullest(const struct resource_list *list,
					   const struct resource *last)
{
	const struct resource *found = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct resource *r = &list->entries[i];
		bool later =
			!last || share(r) < share(last) || (share(r) == share(last) && r > last);

		if (later && share(r) > 0 && (!found || share(r) > share(found)))
			found = r;
	}
	return found;
}

static void print_fullest(const struct resource_list *list, FILE *file)
{
	const struct resource *r = NULL;

	fprintf(file, "%-16s %14s %14s %6s  %s\n", "fullest", "used", "of", "", "");
	for (int i = 0; i < FULLEST && (r = next_fullest(list, r)); i++) {
		char used[32], capacity[32];

		format_value(r->used, used, sizeof(used));
		format_value(r->capacity, capacity, sizeof(capacity));
		fprintf(file, "%-16s %14s %14s %5.1f%%  %s\n", resource_names[r->kind], used,
			capacity, share(r) * 100, r->object);
	}
}

int doctor_print_text(const struct doctor_report *report, FILE *file)
{
	for (size_t i = 0; i < report->findings.count; i++)
		print_finding(&report->findings.entries[i], file);
	if (!report->findings.count)
		fputs("Nothing is running out.\n\n", file);
	print_fullest(&report->resources, file);
	for (size_t i = 0; i < report->note_count; i++)
		fprintf(file, "%snot seen: %s\n", i ? "" : "\n", report->notes[i]);
	return fflush(file) || ferror(file) ? -EIO : 0;
}
