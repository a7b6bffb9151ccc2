// SPDX-License-Identifier: MIT
/* The cost of observing: the programs' time in the kernel, and the time and memory of this process. */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "host/machine.h"
#include "sojourn/clock.h"
#include "sojourn/machine.h"

int source_cost_read(const struct loader *loader, bool run_statistics, struct run_cost *ret_cost)
{
	struct loader_program programs[PLAN_ROWS];
	size_t count = loader_programs(loader, programs, PLAN_ROWS);
	struct run_program *list = calloc(count + 1, sizeof(*list));
	struct run_machine machine;
	struct rusage usage;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		memcpy(list[i].name, programs[i].name, sizeof(list[i].name));
		list[i].runs = (struct run_number){run_statistics, programs[i].runs};
		list[i].run_ns = (struct run_number){run_statistics, programs[i].run_ns};
		list[i].recursion_misses = programs[i].recursion_misses;
	}
	if (run_machine_copy(machine_own(), &machine)) {
		free(list);
		return -ENOMEM;
	}
	getrusage(RUSAGE_SELF, &usage);
	*ret_cost = (struct run_cost){
		.cpu_ns = clock_process_cpu_ns(),
		.resident_bytes = (uint64_t)usage.ru_maxrss * 1024,
		.map_bytes = loader_map_bytes(loader),
		.sharing_cpus = {true, 1U << loader_config(loader)->copy_shift},
		.programs = list,
		.program_count = count,
		.machine = machine,
	};
	return 0;
}
