// SPDX-License-Identifier: MIT
/* Prints a plan for people and for programs; see probe.h. Neighbour: cost_print.c. */
#include "probe.h"

#include <errno.h>
#include <jansson.h>
#include <sys/utsname.h>

#include "cost_print.h"
#include "kernel/loader.h"
#include "sojourn/run.h"

static const char *row_state(const struct plan_row *row)
{
	if (!row->rehearsed)
		return "not tried";
	if (row->reason[0])
		return "refused";
	if (row->chosen)
		return "works";
	return row->candidate->use == USE_ALWAYS ? "works, not needed" : "works, on request";
}

void probe_print_text(const struct plan *plan, FILE *file)
{
	struct utsname name;

	uname(&name);
	fprintf(file, "Linux %s %s\n", name.release, name.machine);
	(void)cost_print_machine(file);
	fputc('\n', file);
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		fprintf(file, "%s\n", candidate_questions[row->candidate->question].text);
		fprintf(file, "  %-28s %-15s %s\n", row->candidate->hook, row->candidate->program,
			row_state(row));
		if (row->reason[0])
			fprintf(file, "    why: %s\n", row->reason);
		fprintf(file, "    for: %s\n", candidate_questions[row->candidate->question].use);
	}
	fprintf(file, "\nStages\n");
	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		const char *missing = plan_missing(plan, stage);

		fprintf(file, "  %-14s %s%s\n", run_stage_names[stage],
			missing ? "not measured: " : "measured", missing ? missing : "");
	}
}

static json_t *row_json(const struct plan_row *row)
{
	const struct candidate *c = row->candidate;

	return json_pack("{s:s, s:s, s:s, s:b, s:b, s:s*, s:o*}", "question",
			 candidate_questions[c->question].text, "hook", c->hook, "program",
			 c->program, "works", row->rehearsed && !row->reason[0], "chosen",
			 row->chosen, "reason", row->reason[0] ? row->reason : NULL,
			 "verified_instructions",
			 row->verified ? json_integer(row->verified) : NULL);
}

int probe_print_json(const struct plan *plan, const struct cost *cost, FILE *file)
{
	json_t *candidates = json_array(), *stages = json_object(), *root;
	struct utsname name;
	int r;

	uname(&name);
	for (size_t i = 0; i < PLAN_ROWS; i++)
		json_array_append_new(candidates, row_json(&plan->rows[i]));
	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		const char *missing = plan_missing(plan, stage);

		json_object_set_new(
			stages, run_stage_names[stage],
			json_pack("{s:b, s:s*}", "measured", !missing, "reason", missing));
	}
	root = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o*}", "schema", "sojourn.probe/1", "kernel",
			 name.release, "machine", cost_machine_json(), "candidates", candidates,
			 "stages", stages, "cost", cost ? cost_json(cost) : NULL);
	if (!root)
		return -ENOMEM;
	r = json_dumpf(root, file, JSON_INDENT(2));
	json_decref(root);
	fputc('\n', file);
	return r ? -EIO : 0;
}
