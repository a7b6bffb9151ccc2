// SPDX-License-Identifier: MIT
/*
 * Prints the cost of observing on this host, for people and for programs; see cost.h and probe.h.
 */
#include "cost_print.h"

#include <errno.h>
#include <string.h>

#include "host/machine.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/machine.h"
#include "sojourn/units.h"

#define CELL 32

/* Requests per second at which the cost is interpreted; it grows with them. */
static const uint64_t rates[] = {1000, 12000, 100000};

static const struct {
	const char *name;
	const char *text;
} modes[COST_MODES] = {
	[COST_EMPTY] = {"empty", "programs that do nothing"},
	[COST_FILTERED] = {"filtered", "ours, port not observed"},
	[COST_OBSERVED] = {"observed", "ours"},
	[COST_KEPT] = {"kept", "ours, every request sampled"},
	[COST_HTTP] = {"http", "ours, with --http"},
};

/* ---- for people ---- */

int cost_print_machine(FILE *file)
{
	const struct run_machine *machine = machine_own();
	autofree char *mitigations = run_machine_mitigations(machine);

	if (!mitigations)
		return -ENOMEM;
	fprintf(file, "Mitigations: %s\nClock source: %s\nVirtualisation: %s\n", mitigations,
		run_machine_clock(machine), run_machine_virtualisation(machine));
	return 0;
}

/* A difference that may be zero is not printed as a figure: noise has a median, too. */
static const char *cell(const struct spread *spread, int digits, size_t size, char *text)
{
	if (spread->rounds < SPREAD_LEAST || spread->high <= 0)
		snprintf(text, size, "not known");
	else if (spread->low <= 0)
		snprintf(text, size, "at most %.*f", digits, spread->high);
	else
		snprintf(text, size, "%.*f [%.*f .. %.*f]", digits, spread->median, digits,
			 spread->low, digits, spread->high);
	return text;
}

static void print_exchanges(const struct cost *cost, FILE *file)
{
	char both[CELL], server[CELL];

	fprintf(file,
		"\nMeasured here: %s exchanges over loopback, both ends by one thread, in %.1f s; "
		"medians of %zu rounds [95 %% confidence]\n\n"
		"One exchange with nothing attached: %s ns\n\n",
		as_count(cost->exchanges), (double)(cost->ended_ns - cost->begun_ns) / NSEC_PER_SEC,
		cost->exchange_ns.rounds, cell(&cost->exchange_ns, 0, sizeof(both), both));
	fprintf(file, "%-30s %-24s %s\n", "Added to it by programs, ns", "at both ends",
		"at the server's");
	for (unsigned int mode = 0; mode < COST_MODES; mode++) {
		if (!cost->server_ns[mode].rounds)
			continue;
		fprintf(file, "  %-28s %-24s %s\n", modes[mode].text,
			cell(&cost->both_ns[mode], 0, sizeof(both), both),
			cell(&cost->server_ns[mode], 0, sizeof(server), server));
	}
}

static void print_run(const char *name, const char *hook, uint64_t runs,
		      const struct spread *run_ns, FILE *file)
{
	char cells[COST_TIMED_MODES][CELL];

	for (unsigned int mode = 0; mode < COST_TIMED_MODES; mode++)
		cell(&run_ns[mode], 0, CELL, cells[mode]);
	fprintf(file, "  %-16s %-24s %9s  %-17s %-17s %s\n", name, hook, runs ? as_count(runs) : "",
		cells[COST_EMPTY], cells[COST_FILTERED], cells[COST_OBSERVED]);
}

static void print_programs(const struct cost *cost, FILE *file)
{
	if (cost->timed_error) {
		fprintf(file,
			"\nSingle programs: not known: the kernel's run statistics are refused "
			"(%s): they need CAP_SYS_ADMIN\n",
			strerror(cost->timed_error));
		return;
	}
	fprintf(file,
		"\nOne run of a program, ns, by the kernel's run statistics (with their clock "
		"reads, "
		"without entry and exit)\n"
		"  %-16s %-24s %9s  %-17s %-17s %s\n",
		"program", "hook", "runs", "does nothing", "port not observed", "observed");
	for (size_t i = 0; i < cost->program_count; i++) {
		const struct cost_program *program = &cost->programs[i];

		print_run(program->name, program->hook, program->runs, program->run_ns, file);
	}
	print_run("an exchange", "", 0, cost->sum_ns, file);
}

static void print_share(const struct cost *cost, enum cost_mode mode, uint64_t rate,
			const char *before, FILE *file)
{
	struct spread share = cost_share(cost, mode, rate);

	if (share.high <= 0)
		fprintf(file, "%snot known", before);
	else if (share.low <= 0)
		fprintf(file, "%sat most %.2f %% of one core", before, share.high);
	else
		fprintf(file, "%s%.2f %% of one core [%.2f .. %.2f]", before, share.median,
			share.low, share.high);
}

static void print_rates(const struct cost *cost, FILE *file)
{
	fprintf(file, "\nFor a server with clients on other hosts (kernel side, without the "
		      "observer's process)\n");
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		fprintf(file, "  at %s requests/s: ", as_count(rates[i]));
		print_share(cost, COST_OBSERVED, rates[i], "", file);
		print_share(cost, COST_KEPT, rates[i], "; every request sampled: ", file);
		fputc('\n', file);
	}
}

static void print_others(const struct cost *cost, FILE *file)
{
	if (cost->others_most < 0)
		fprintf(file, "Whether others have programs on the same hooks is not known.\n");
	else if (cost->others_most)
		fprintf(file,
			"Others had %d to %d programs on the same hooks meanwhile. Beside them, "
			"one "
			"more program costs a different amount.\n",
			cost->others_least, cost->others_most);
}

static void print_doubt(const struct cost *cost, FILE *file)
{
	for (unsigned int mode = 0; mode < COST_MODES; mode++) {
		if (cost->server_ns[mode].low > 0 || !cost->server_ns[mode].rounds)
			continue;
		fprintf(file, "This host was too busy to distinguish some of it from nothing: try "
			      "again.\n");
		return;
	}
}

int probe_print_cost(const struct cost *cost, FILE *file)
{
	int r = cost_print_machine(file);

	if (r < 0)
		return r;
	print_exchanges(cost, file);
	print_others(cost, file);
	print_programs(cost, file);
	print_rates(cost, file);
	print_doubt(cost, file);
	return 0;
}

/* ---- for programs ---- */

json_t *cost_machine_json(void)
{
	const struct run_machine *machine = machine_own();
	json_t *list = machine->mitigations ? json_array() : json_null();

	for (char **text = machine->mitigations; text && *text; text++)
		json_array_append_new(list, json_string(*text));
	return json_pack("{s:o, s:s?, s:s?}", "mitigations", list, "clock_source",
			 machine->clock_source, "virtualisation", machine->virtualisation);
}

static json_t *spread_json(const struct spread *spread)
{
	if (spread->rounds < SPREAD_LEAST)
		return json_null();
	return json_pack("{s:f, s:f, s:f}", "median", spread->median, "low", spread->low, "high",
			 spread->high);
}

/* An object with a member for each of the first @count modes. */
static json_t *modes_json(const struct spread *spreads, unsigned int count)
{
	json_t *object = json_object();

	for (unsigned int mode = 0; mode < count; mode++)
		json_object_set_new(object, modes[mode].name, spread_json(&spreads[mode]));
	return object;
}

static json_t *programs_json(const struct cost *cost)
{
	json_t *list = json_array();

	for (size_t i = 0; i < cost->program_count; i++) {
		const struct cost_program *program = &cost->programs[i];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:o}", "name", program->name, "hook",
					program->hook, "runs", (json_int_t)program->runs, "run_ns",
					modes_json(program->run_ns, COST_TIMED_MODES)));
	}
	return list;
}

static json_t *rates_json(const struct cost *cost)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct spread shares[COST_MODES];

		for (unsigned int mode = 0; mode < COST_MODES; mode++)
			shares[mode] = cost_share(cost, mode, rates[i]);
		json_array_append_new(list, json_pack("{s:I, s:o}", "requests_per_s",
						      (json_int_t)rates[i], "core_percent",
						      modes_json(shares, COST_MODES)));
	}
	return list;
}

static json_t *others_json(const struct cost *cost)
{
	if (cost->others_least < 0)
		return json_null();
	return json_pack("{s:i, s:i}", "least", cost->others_least, "most", cost->others_most);
}

json_t *cost_json(const struct cost *cost)
{
	return json_pack(
		"{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:s*, s:o}", "exchanges",
		(json_int_t)cost->exchanges, "rounds", (json_int_t)cost->exchange_ns.rounds,
		"duration_ns", (json_int_t)(cost->ended_ns - cost->begun_ns), "others",
		others_json(cost), "exchange_ns", spread_json(&cost->exchange_ns), "both_ends_ns",
		modes_json(cost->both_ns, COST_MODES), "server_ns",
		modes_json(cost->server_ns, COST_MODES), "programs",
		cost->timed_error ? json_null() : programs_json(cost), "programs_sum_ns",
		cost->timed_error ? json_null() : modes_json(cost->sum_ns, COST_TIMED_MODES),
		"programs_reason", cost->timed_error ? strerror(cost->timed_error) : NULL, "rates",
		rates_json(cost));
}
