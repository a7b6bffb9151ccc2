/* SPDX-License-Identifier: MIT */
/*
 * Resources that run out: a const table of rules over resources, and the findings they give. docs/diagnoses.md has a
 * section for every rule. A test compares the two.
 */
#ifndef OBSERVER_RESOURCES_DIAGNOSE_H
#define OBSERVER_RESOURCES_DIAGNOSE_H

#include "resource.h"

enum severity {
	SEVERITY_NONE,
	SEVERITY_NOTICE, /* worth knowing, nothing runs out */
	SEVERITY_WARNING,
	SEVERITY_CRITICAL
};

extern const char *const severity_names[];

/* The number of a resource that a rule looks at. */
enum measure {
	MEASURE_SHARE,	      /* used / capacity, 0 … 1 */
	MEASURE_SECONDS_LEFT, /* less is worse */
	MEASURE_EVENTS,	      /* in the sample */
	MEASURE_USED,
	MEASURE_HELD,	 /* used, but nothing runs out: a notice if `warning` is met */
	MEASURE_GROWN,	 /* since the first reading, steadily */
	MEASURE_LEAKING, /* per second, steadily */
	MEASURE_HANGS,	 /* seconds without an answer, while requests wait */
};

/* A threshold that is never met. */
#define NEVER NAN

struct rule {
	const char *id; /* also its section in docs/diagnoses.md */
	enum resource_kind resource;
	enum measure measure;
	double warning; /* met from here on (seconds left: up to here) */
	double critical;
	const char *unless; /* the id of a rule that says more about the same resource; or NULL */
	const char *what;
	const char *outlook; /* when the resource itself predicts nothing */
	const char *command; /* exactly what to type; NULL: none helps */
	const char *change;  /* what to change in the program */
	const char *risk;
};

extern const struct rule diagnose_rules[];
extern const size_t diagnose_rule_count;

struct finding {
	const struct rule *rule;
	enum severity severity;
	struct resource resource;
};

struct finding_list {
	struct finding *entries;
	size_t count;
};

/*
 * Find the findings of @resources, worst first. An accept queue that fills because its process has
 * no descriptor left is evidence of that, and no finding of its own. 0 or -ENOMEM.
 */
int diagnose(const struct resource_list *resources, struct finding_list *ret_findings);
/*
 * Make critical findings warnings if they harm nobody else: if @excuse returns the reason, which
 * becomes their outlook unless they have one. Sort again.
 */
void diagnose_soften(struct finding_list *findings,
		     const char *(*excuse)(const void *context, const struct resource *resource),
		     const void *context);
void diagnose_free(struct finding_list *findings);

/* Return the worst severity. */
enum severity diagnose_worst(const struct finding_list *findings);

/* Print "docs/diagnoses.md#ID". */
char *diagnose_link(const struct rule *rule, char *buffer, size_t size);

#endif
