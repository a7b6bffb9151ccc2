// SPDX-License-Identifier: MIT
/* Applies the rules to resources; see diagnose.h. */
#include "diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"

const char *const severity_names[] = {"none", "notice", "warning", "critical"};

static double share(const struct resource *resource)
{
	if (resource->capacity > 0)
		return resource->used / resource->capacity;
	/* listen(fd, 0) admits one connection; 0 for anything else means "not known". */
	return resource->kind == RESOURCE_ACCEPT_QUEUE && resource->capacity == 0 &&
			       resource->used > 1
		       ? 1
		       : 0;
}

static double measured(const struct rule *rule, const struct resource *resource)
{
	switch (rule->measure) {
	case MEASURE_SHARE:
		return share(resource);
	case MEASURE_SECONDS_LEFT:
		return -resource->seconds_left;
	case MEASURE_EVENTS:
		return resource->events;
	case MEASURE_USED:
	case MEASURE_HELD:
		return resource->used;
	case MEASURE_GROWN:
		return resource->grown;
	case MEASURE_LEAKING:
		return resource->leaking;
	case MEASURE_HANGS:
		return resource->hangs;
	}
	return 0;
}

/* Return the severity of @rule for @resource, by its thresholds alone. */
static enum severity severity_by(const struct rule *rule, const struct resource *resource)
{
	double sign = rule->measure == MEASURE_SECONDS_LEFT ? -1 : 1;
	double value = measured(rule, resource);

	/* Comparisons with NEVER are false. */
	if (rule->resource != resource->kind)
		return SEVERITY_NONE;
	if (value >= sign * rule->critical)
		return SEVERITY_CRITICAL;
	if (value >= sign * rule->warning)
		return rule->measure == MEASURE_HELD ? SEVERITY_NOTICE : SEVERITY_WARNING;
	return SEVERITY_NONE;
}

static const struct rule *rule_by_id(const char *id)
{
	for (size_t i = 0; id && i < diagnose_rule_count; i++) {
		if (!strcmp(diagnose_rules[i].id, id))
			return &diagnose_rules[i];
	}
	return NULL;
}

/* Return whether a rule in the chain of `unless` says it already. */
static bool outdone(const struct rule *rule, const struct resource *resource)
{
	const struct rule *other = rule_by_id(rule->unless);

	for (; other; other = rule_by_id(other->unless)) {
		if (severity_by(other, resource))
			return true;
	}
	return false;
}

static int apply(const struct rule *rule, const struct resource_list *resources,
		 struct finding_list *list)
{
	int r = 0;

	for (size_t i = 0; !r && i < resources->count; i++) {
		const struct resource *resource = &resources->entries[i];
		enum severity severity = severity_by(rule, resource);

		if (!severity || outdone(rule, resource))
			continue;
		r = ARRAY_GROW(list->entries, list->count);
		if (!r)
			list->entries[list->count++] = (struct finding){
				.rule = rule, .severity = severity, .resource = *resource};
	}
	return r;
}

/* ---- consequences ---- */

/* Return the finding that @finding's process is out of descriptors; NULL: it is not. */
static struct finding *cause_of(struct finding_list *list, const struct finding *finding)
{
	for (size_t i = 0; i < list->count; i++) {
		struct finding *other = &list->entries[i];

		if (other->resource.kind == RESOURCE_DESCRIPTORS &&
		    other->severity == SEVERITY_CRITICAL && finding->resource.owner_count &&
		    other->resource.owners[0].pid == finding->resource.owners[0].pid)
			return other;
	}
	return NULL;
}

/* Return a finding that names the exhausted resource, not only the failing calls. */
static struct finding *explanation_of(struct finding_list *list, const struct finding *finding)
{
	bool ports = finding->resource.kind == RESOURCE_PORT_FAILURES;
	enum resource_kind kind = ports ? RESOURCE_PORTS : RESOURCE_DESCRIPTORS;

	for (size_t i = 0; i < list->count; i++) {
		const struct resource *r = &list->entries[i].resource;
		const char *to = strstr(r->object, " to ");

		if (r->kind != kind || list->entries[i].severity != SEVERITY_CRITICAL)
			continue;
		if (ports ? r->netns == finding->resource.netns && to &&
				    !strcmp(to + 4, finding->resource.object)
			  : r->owner_count && finding->resource.owner_count &&
				    r->owners[0].pid == finding->resource.owners[0].pid)
			return &list->entries[i];
	}
	return NULL;
}

/* Name the failing process with the ended connections: TIME_WAIT alone has no owner. */
static void fold_owner(struct resource *into, const struct resource_owner *failed)
{
	struct resource_owner *owner = resource_owner(into, failed->pid);

	if (!owner) /* the one with the fewest sockets gives way */
		owner = &into->owners[RESOURCE_OWNERS - 1];
	if (owner->pid == failed->pid && *owner->comm)
		resource_did(into, failed->pid, "%s", failed->did);
	else
		*owner = *failed;
}

/* Return what waits because a process does not accept; NULL: @finding has other causes. */
static const char *waiting(const struct finding *finding)
{
	if (finding->resource.kind == RESOURCE_ACCEPT_QUEUE)
		return "waiting for accept() meanwhile";
	/* A full accept queue holds handshakes back. SYNs that are dropped are critical, and stay. */
	if (finding->resource.kind == RESOURCE_SYN_QUEUE && finding->severity < SEVERITY_CRITICAL)
		return "unfinished handshakes meanwhile";
	return NULL;
}

/* Move @finding's facts to the finding that explains it; false if there is none. */
static bool fold(struct finding_list *list, const struct finding *finding)
{
	const struct resource *from = &finding->resource;
	const char *waits = waiting(finding);
	struct finding *into = NULL;

	if (waits)
		into = cause_of(list, finding);
	else if (from->kind == RESOURCE_PORT_FAILURES || from->kind == RESOURCE_DESCRIPTOR_FAILURES)
		into = explanation_of(list, finding);
	if (!into)
		return false;
	if (waits)
		resource_fact(&into->resource, waits, from->used, "connections",
			      "listening sockets");
	for (size_t i = 0; !waits && i < from->fact_count; i++)
		resource_fact(&into->resource, from->facts[i].name, from->facts[i].value,
			      from->facts[i].unit, from->facts[i].source);
	if (from->kind == RESOURCE_PORT_FAILURES && from->owner_count)
		fold_owner(&into->resource, &from->owners[0]);
	return true;
}

static void fold_consequences(struct finding_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct finding *finding = &list->entries[i];

		if (fold(list, finding))
			continue;
		if (kept != i)
			list->entries[kept] = *finding;
		kept++;
	}
	list->count = kept;
}

/* Worst first, then as in the table, then the fullest. */
static int compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	double left = share(&x->resource), right = share(&y->resource);

	if (x->severity != y->severity)
		return x->severity < y->severity ? 1 : -1;
	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return left < right ? 1 : left > right ? -1 : 0;
}

static void sort(struct finding_list *list)
{
	if (list->count)
		qsort(list->entries, list->count, sizeof(*list->entries), compare);
}

int diagnose(const struct resource_list *resources, struct finding_list *ret_findings)
{
	struct finding_list list = {};
	int r = 0;

	for (size_t i = 0; !r && i < diagnose_rule_count; i++)
		r = apply(&diagnose_rules[i], resources, &list);
	if (r < 0) {
		diagnose_free(&list);
		return r;
	}
	fold_consequences(&list);
	sort(&list);
	*ret_findings = list;
	return 0;
}

void diagnose_soften(struct finding_list *findings,
		     const char *(*excuse)(const void *context, const struct resource *resource),
		     const void *context)
{
	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->entries[i];
		struct resource *resource = &finding->resource;
		const char *reason = NULL;

		if (finding->severity == SEVERITY_CRITICAL)
			reason = excuse(context, resource);
		if (!reason)
			continue;
		finding->severity = SEVERITY_WARNING;
		if (!*resource->outlook)
			snprintf(resource->outlook, sizeof(resource->outlook), "%s", reason);
	}
	sort(findings);
}

void diagnose_free(struct finding_list *findings)
{
	free(findings->entries);
	*findings = (struct finding_list){};
}

enum severity diagnose_worst(const struct finding_list *findings)
{
	enum severity worst = SEVERITY_NONE;

	for (size_t i = 0; i < findings->count; i++) {
		if (findings->entries[i].severity > worst)
			worst = findings->entries[i].severity;
	}
	return worst;
}

char *diagnose_link(const struct rule *rule, char *buffer, size_t size)
{
	snprintf(buffer, size, "docs/diagnoses.md#%s", rule->id);
	return buffer;
}
