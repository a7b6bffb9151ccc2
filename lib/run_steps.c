/* SPDX-License-Identifier: MIT */
/* The steps of several drivers' scenarios made one list: those of one name are the same step. */
#include <errno.h>
#include <string.h>

#include "run_members.h"
#include "run_merge.h"

static struct run_scenario_step *find_step(struct run_driver *driver, const char *name)
{
	for (size_t i = 0; i < driver->step_count; i++)
		if (merge_same(driver->steps[i].name, name))
			return &driver->steps[i];
	return NULL;
}

/* Takes what @other points to over. */
static int append_step(struct run_driver *driver, struct run_scenario_step *other, char **ret_error)
{
	struct run_scenario_step *steps;

	if (driver->step_count == RUN_STEPS_MAX)
		return merge_refuse(ret_error,
				    "driver.steps: more than %u steps of different names",
				    RUN_STEPS_MAX);
	steps = reallocarray(driver->steps, driver->step_count + 1, sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	driver->steps = steps;
	steps[driver->step_count++] = *other;
	other->name = other->target = other->method = NULL;
	return 0;
}

int merge_steps(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < other->step_count && !err; i++) {
		struct run_scenario_step *step = find_step(driver, other->steps[i].name);

		if (step)
			err = merge_members(&run_scenario_step_members, step, &other->steps[i],
					    ret_error);
		else
			err = append_step(driver, &other->steps[i], ret_error);
	}
	return err;
}
