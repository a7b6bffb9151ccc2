// SPDX-License-Identifier: MIT
/* Properties of a host that decide what BPF programs cost; see sojourn/machine.h. */
#include "sojourn/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "members.h"
#include "merge.h"
#include "sojourn/cleanup.h"
#include "sojourn/finding.h"

#define NOT_KNOWN "not known"

void run_machine_clear(struct run_machine *machine)
{
	members_free(&run_machine_members, machine);
}

static int copy_into(const struct run_machine *machine, struct run_machine *copy)
{
	int err = merge_copy(&copy->clock_source, machine->clock_source);

	if (!err)
		err = merge_copy(&copy->virtualisation, machine->virtualisation);
	if (err || !machine->mitigations)
		return err;
	copy->mitigations = run_strings_copy(machine->mitigations);
	return copy->mitigations ? 0 : -ENOMEM;
}

int run_machine_copy(const struct run_machine *machine, struct run_machine *ret_copy)
{
	struct run_machine copy = {0};
	int err = copy_into(machine, &copy);

	if (err)
		run_machine_clear(&copy);
	else
		*ret_copy = copy;
	return err;
}

bool run_machine_known(const struct run_machine *machine)
{
	return machine->mitigations || machine->clock_source || machine->virtualisation;
}

static bool same_texts(char *const *a, char *const *b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b && !strcmp(*a, *b); a++)
		b++;
	return !*a && !*b;
}

void run_machine_merge(struct run_machine *machine, const struct run_machine *other)
{
	merge_label(&machine->clock_source, other->clock_source);
	merge_label(&machine->virtualisation, other->virtualisation);
	if (!same_texts(machine->mitigations, other->mitigations))
		run_strings_free(TAKE_PTR(machine->mitigations));
}

char *run_machine_mitigations(const struct run_machine *machine)
{
	char *const *list = machine->mitigations;
	size_t length = 1;
	char *text, *end;

	if (!list || !*list)
		return strdup(list ? "none that BPF programs pay for" : NOT_KNOWN);
	for (char *const *at = list; *at; at++)
		length += strlen(*at) + strlen(", ");
	text = end = malloc(length);
	for (; end && *list; list++)
		end = stpcpy(end == text ? end : stpcpy(end, ", "), *list);
	return text;
}

const char *run_machine_clock(const struct run_machine *machine)
{
	return machine->clock_source ? machine->clock_source : NOT_KNOWN;
}

const char *run_machine_virtualisation(const struct run_machine *machine)
{
	return machine->virtualisation ? machine->virtualisation : NOT_KNOWN;
}
