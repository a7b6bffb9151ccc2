// SPDX-License-Identifier: MIT
/* A sweep in memory; see sojourn/sweep.h. */
#include "sojourn/sweep.h"

#include <stdlib.h>

struct run_sweep_step *run_add_sweep_step(struct run_sweep *sweep)
{
	struct run_sweep_step *steps =
		reallocarray(sweep->steps, sweep->step_count + 1, sizeof(*sweep->steps));

	if (!steps)
		return NULL;
	sweep->steps = steps;
	steps[sweep->step_count] = (struct run_sweep_step){0};
	return &steps[sweep->step_count++];
}

void run_sweep_step_clear(struct run_sweep_step *step)
{
	for (size_t i = 0; i < step->target_count; i++)
		free(step->targets[i].name);
	free(step->targets);
	free(step->limited);
	step->targets = NULL;
	step->target_count = 0;
	step->limited = NULL;
}

void run_sweep_free(struct run_sweep *sweep)
{
	if (!sweep)
		return;
	for (size_t i = 0; i < sweep->step_count; i++)
		run_sweep_step_clear(&sweep->steps[i]);
	if (sweep->three_quarters)
		run_sweep_step_clear(sweep->three_quarters);
	free(sweep->three_quarters);
	free(sweep->steps);
	free(sweep->target);
	free(sweep->method);
	free(sweep->over);
	free(sweep->unfitted);
	free(sweep->stopped);
	free(sweep);
}
