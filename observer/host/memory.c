// SPDX-License-Identifier: MIT
/* Limits of memory: of cgroups, and the host's; see memory.h. */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "sojourn/cleanup.h"

/* Version 1 shows this if there is no limit: LONG_MAX rounded down to pages. */
#define NO_LIMIT (1ULL << 62)

/* By version: the text before the path in /proc/self/cgroup, and where the limit is. */
static const struct {
	const char *line;
	const char *mount;
	const char *file;
} versions[] = {
	{"0::", "/sys/fs/cgroup", "memory.max"},
	{"memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
};

static void lower(const char *path, uint64_t *limit)
{
	autofclose FILE *file = fopen(path, "re");
	unsigned long long bytes;

	if (file && fscanf(file, "%llu", &bytes) == 1 && bytes < NO_LIMIT &&
	    (!*limit || bytes < *limit))
		*limit = bytes;
}

/* Take the lowest limit of the cgroup at @below and of all above it: each limits its members. */
static void lower_upwards(const char *mount, const char *file, char *below, uint64_t *limit)
{
	char path[4096], *slash;

	do {
		snprintf(path, sizeof(path), "%s%s/%s", mount, below, file);
		lower(path, limit);
		slash = strrchr(below, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
}

uint64_t memory_limit(void)
{
	autofclose FILE *file = fopen("/proc/self/cgroup", "re");
	char line[2048];
	uint64_t limit = 0;

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
			/* "4:memory:/path", "4:cpu,memory:/path", and "0::/path" from its begin. */
			char *at = strstr(line, versions[i].line);
			char *below = at ? at + strlen(versions[i].line) : NULL;

			if (!below || *below != '/')
				continue;
			lower_upwards(versions[i].mount, versions[i].file, below, &limit);
			break;
		}
	}
	return limit;
}

uint64_t memory_of_host(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}
