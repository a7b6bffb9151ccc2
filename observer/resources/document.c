// SPDX-License-Identifier: MIT
/* Findings and resources as the run document has them; see look.h, sojourn/finding.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "look.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

/* "connected: 260 ports (TCP sockets, inet_diag)" */
static void format_fact(const struct resource_fact *fact, char *buffer, size_t size)
{
	bool port = !strcmp(fact->unit, "port");
	char value[32];

	if (port) /* has no thousands */
		snprintf(value, sizeof(value), "%.0f", fact->value);
	else if (fact->value >= 1 && fact->value == (double)(uint64_t)fact->value)
		units_format_count((uint64_t)fact->value, value, sizeof(value));
	else
		snprintf(value, sizeof(value), "%.*f", fact->value == 0 ? 0 : 2, fact->value);
	snprintf(buffer, size, "%s: %s%s%s (%s)", fact->name, value,
		 port || !*fact->unit ? "" : " ", port ? "" : fact->unit, fact->source);
}

/*
 * Return whether systemd alone has the listener: the service of a socket unit has not started, or has not taken the
 * socket over. The rule's advice to a server helps nobody then.
 */
static bool awaits_activation(const struct resource *resource)
{
	return (resource->kind == RESOURCE_REQUESTS || resource->kind == RESOURCE_ACCEPT_QUEUE ||
		resource->kind == RESOURCE_DEAD_QUEUED) &&
	       resource->owner_count == 1 && !strcmp(resource->owners[0].comm, "systemd");
}

/* Return whether the command changes nothing: it is never idle. */
static bool reads(const char *command)
{
	return command && !strncmp(command, "ls ", 3);
}

/* Return the rule's command with the finding's own process. NULL if it has none, or none that helps here. */
static const char *format_command(const struct finding *finding, char *buffer, size_t size)
{
	const char *at = finding->rule->command, *mark;
	size_t length = 0;

	if (awaits_activation(&finding->resource) || (finding->resource.command_idle && !reads(at)))
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

		/* Most zeros say nothing, except in the subject of the finding. */
		if (resource->facts[i].value == 0 && i && !resource->facts[i].zero_counts)
			continue;
		format_fact(&resource->facts[i], text, sizeof(text));
		r = run_add_text(&finding->evidence, text);
	}
	return r;
}

static int add_owners(const struct resource *resource, struct run_finding *finding)
{
	for (size_t i = 0; i < resource->owner_count; i++) {
		const struct resource_owner *from = &resource->owners[i];
		struct run_owner *to = ARRAY_APPEND(finding->owners, finding->owner_count);

		if (!to)
			return -ENOMEM;
		to->pid = from->pid;
		memcpy(to->comm, from->comm, sizeof(to->comm));
		memcpy(to->unit, from->unit, sizeof(to->unit));
		memcpy(to->did, from->did, sizeof(to->did));
		if (from->sockets)
			to->sockets = number(from->sockets);
	}
	return 0;
}

/* The prediction from the numbers, then its meaning. */
static int add_outlook(const struct finding *from, struct run_finding *to)
{
	const char *numbers = from->resource.outlook, *meaning = from->rule->outlook;

	if (!meaning)
		return copy(&to->outlook, numbers);
	to->outlook = text_format("%s%s%s", numbers, *numbers ? ": " : "", meaning);
	return to->outlook ? 0 : -ENOMEM;
}

static const char start_service[] =
	"systemd holds this socket, and its service has not started or has not taken it over: "
	"'systemctl list-sockets' names it, and 'systemctl status' of it says why";

static int add_texts(const struct finding *from, struct run_finding *to)
{
	char command[256], link[128];
	int r = copy(&to->what, from->rule->what);

	if (!r)
		r = add_evidence(&from->resource, to);
	if (!r)
		r = add_outlook(from, to);
	if (!r)
		r = copy(&to->command, format_command(from, command, sizeof(command)));
	if (!r)
		r = copy(&to->change,
			 awaits_activation(&from->resource) ? start_service : from->rule->change);
	if (!r)
		r = copy(&to->risk, from->rule->risk);
	if (!r)
		r = copy(&to->link, diagnose_link(from->rule, link, sizeof(link)));
	return r;
}

/* Fill in the common members, owners included. */
static int fill(const struct resource *from, struct run_finding *to)
{
	if (!to)
		return -ENOMEM;
	snprintf(to->resource, sizeof(to->resource), "%s", resource_names[from->kind]);
	memcpy(to->object, from->object, sizeof(to->object));
	to->port = from->port;
	to->netns = from->netns;
	memcpy(to->netns_name, from->netns_name, sizeof(to->netns_name));
	to->used = number(from->used);
	if (from->capacity > 0)
		to->capacity = number(from->capacity);
	to->ends_in_ns = number(from->seconds_left * (double)NSEC_PER_SEC);
	return add_owners(from, to);
}

int document_findings(const struct finding_list *findings, struct run *run)
{
	int r = 0;

	for (size_t i = 0; !r && i < findings->count; i++) {
		const struct finding *from = &findings->entries[i];
		struct run_finding *to = ARRAY_APPEND(run->findings, run->finding_count);

		r = fill(&from->resource, to);
		if (r < 0)
			break;
		snprintf(to->id, sizeof(to->id), "%s", from->rule->id);
		snprintf(to->severity, sizeof(to->severity), "%s", severity_names[from->severity]);
		r = add_texts(from, to);
	}
	return r;
}

int document_resources(const struct resource_list *resources, struct run *run)
{
	int r = 0;

	for (size_t i = 0; !r && i < resources->count; i++) {
		const struct resource *from = &resources->entries[i];
		struct run_finding *to = ARRAY_APPEND(run->resources, run->resource_count);

		r = fill(from, to);
		if (r < 0)
			break;
		to->deepest = number(from->deepest);
		to->growth_per_hour = number(from->growth * 3600);
	}
	return r;
}
