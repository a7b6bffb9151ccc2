/* SPDX-License-Identifier: MIT */
/* Findings in a run document: added, owned, freed. What they mean is the doctor's affair. */
#include "run_finding.h"

#include <errno.h>
#include <string.h>

static void free_texts(char **texts)
{
	for (char **text = texts; text && *text; text++)
		free(*text);
	free(texts);
}

void run_findings_free(struct run_finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(findings[i].host);
		free(findings[i].what);
		free_texts(findings[i].evidence);
		free(findings[i].outlook);
		free(findings[i].command);
		free(findings[i].change);
		free(findings[i].risk);
		free(findings[i].link);
		free(findings[i].owners);
	}
	free(findings);
}

struct run_finding *run_add_finding(struct run *run)
{
	struct run_finding *more =
		reallocarray(run->findings, run->finding_count + 1, sizeof(*more));

	if (!more)
		return NULL;
	run->findings = more;
	more += run->finding_count++;
	memset(more, 0, sizeof(*more));
	return more;
}

struct run_owner *run_add_owner(struct run_finding *finding)
{
	struct run_owner *more =
		reallocarray(finding->owners, finding->owner_count + 1, sizeof(*more));

	if (!more)
		return NULL;
	finding->owners = more;
	more += finding->owner_count++;
	memset(more, 0, sizeof(*more));
	return more;
}

int run_add_text(char ***list, const char *text)
{
	size_t count = 0;
	char **more;

	while (*list && (*list)[count])
		count++;
	more = reallocarray(*list, count + 2, sizeof(*more));
	if (!more)
		return -ENOMEM;
	*list = more;
	more[count + 1] = NULL;
	more[count] = strdup(text);
	return more[count] ? 0 : -ENOMEM;
}

static int name_findings(struct run *run)
{
	for (size_t i = 0; i < run->finding_count; i++) {
		if (run->findings[i].host || !run->host)
			continue;
		run->findings[i].host = strdup(run->host);
		if (!run->findings[i].host)
			return -ENOMEM;
	}
	return 0;
}

static int merge_notes(struct run *run, struct run *other)
{
	int err = 0;

	if (!run->not_seen) {
		run->not_seen = TAKE_PTR(other->not_seen);
		return 0;
	}
	for (char **text = other->not_seen; text && *text && !err; text++)
		err = run_add_text(&run->not_seen, *text);
	return err;
}

int run_findings_merge(struct run *run, struct run *other)
{
	int err = name_findings(run);

	if (!err)
		err = name_findings(other);
	for (size_t i = 0; i < other->finding_count && !err; i++) {
		struct run_finding *finding = run_add_finding(run);

		if (!finding)
			return -ENOMEM;
		*finding = other->findings[i];
		other->findings[i] = (struct run_finding){0};
	}
	return err ? err : merge_notes(run, other);
}
