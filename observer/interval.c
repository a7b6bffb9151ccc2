// SPDX-License-Identifier: MIT
/* The difference of two readings; see interval.h. */
#include "interval.h"

#include <errno.h>
#include <string.h>

int interval_between(const struct run *now, const struct run *previous, struct run **ret_interval)
{
	autofree char *text = run_to_json(now);
	autofree char *error = NULL;
	int r = text ? run_from_json(text, strlen(text), ret_interval, &error) : -ENOMEM;

	if (!r)
		run_subtract(*ret_interval, previous);
	return r;
}

const struct run_process *interval_fullest(const struct run_service *service)
{
	const struct run_process *worst = NULL;

	for (size_t i = 0; i < service->process_count; i++) {
		const struct run_process *p = &service->processes[i];

		if (p->open_fds.known && p->fd_limit.known &&
		    (!worst || p->open_fds.value * worst->fd_limit.value >
				       worst->open_fds.value * p->fd_limit.value))
			worst = p;
	}
	return worst;
}
