// SPDX-License-Identifier: MIT
/* What observing costs: our programs in the kernel, our time and memory outside of it. */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sojourn/clock.h"

static void fill_program(const struct loader_program *from, bool run_statistics,
			 struct run_program *ret_program)
{
	memcpy(ret_program->name, from->name, sizeof(ret_program->name));
	ret_program->runs = (struct run_number){run_statistics, from->runs};
	ret_program->run_ns = (struct run_number){run_statistics, from->run_ns};
	ret_program->recursion_misses = from->recursion_misses;
}

int source_cost_read(const struct loader *loader, bool run_statistics, struct run_cost *ret_cost)
{
	struct loader_program programs[PLAN_ROWS];
	size_t count = loader_programs(loader, programs, PLAN_ROWS);
	struct run_program *list = calloc(count + 1, sizeof(*list));
	struct rusage usage;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		fill_program(&programs[i], run_statistics, &list[i]);
	getrusage(RUSAGE_SELF, &usage);
	*ret_cost = (struct run_cost){
		.cpu_ns = clock_process_cpu_ns(),
		.resident_bytes = (uint64_t)usage.ru_maxrss * 1024,
		.map_bytes = loader_map_bytes(loader),
		.programs = list,
		.program_count = count,
	};
	return 0;
}
