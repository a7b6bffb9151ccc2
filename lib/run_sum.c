// SPDX-License-Identifier: MIT
/* What sums and differences of run documents are made of. */
#include "sojourn/run_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool run_same_service(const struct run_service *a, const struct run_service *b)
{
	return a->netns == b->netns && a->port == b->port && !strcmp(a->protocol, b->protocol);
}

struct run_service *run_find_service(const struct run *run, const struct run_service *like)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (run_same_service(&run->services[i], like))
			return &run->services[i];
	return NULL;
}

double run_stage_mean(const struct run_service *service, enum stage stage)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;

	if (!service->stages[stage].measured)
		return 0;
	if (stage != STAGE_ACCEPT_QUEUE)
		return histogram_mean(&service->stages[stage].histogram);
	return timed ? (double)service->accept_delay_ns / (double)timed : 0;
}

struct run_program *run_find_program(const struct run_cost *cost, const char *name)
{
	for (size_t i = 0; i < cost->program_count; i++)
		if (!strcmp(cost->programs[i].name, name))
			return &cost->programs[i];
	return NULL;
}

void run_counts_add(uint64_t *counts, const uint64_t *others, size_t count)
{
	for (size_t i = 0; i < count; i++)
		counts[i] += others[i];
}

void run_number_add(struct run_number *number, const struct run_number *other)
{
	number->known = number->known && other->known;
	number->value += other->value;
}

static int append_program(struct run_cost *cost, const struct run_program *other)
{
	struct run_program *programs =
		reallocarray(cost->programs, cost->program_count + 1, sizeof(*programs));

	if (!programs)
		return -ENOMEM;
	cost->programs = programs;
	programs[cost->program_count++] = *other;
	return 0;
}

static int add_program(struct run_cost *cost, const struct run_program *other)
{
	struct run_program *program = run_find_program(cost, other->name);

	if (!program)
		return append_program(cost, other);
	run_number_add(&program->runs, &other->runs);
	run_number_add(&program->run_ns, &other->run_ns);
	program->recursion_misses += other->recursion_misses;
	return 0;
}

int run_cost_add_programs(struct run_cost *cost, const struct run_cost *other)
{
	int r = 0;

	for (size_t i = 0; i < other->program_count && !r; i++)
		r = add_program(cost, &other->programs[i]);
	return r;
}
