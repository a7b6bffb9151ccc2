/* SPDX-License-Identifier: MIT */
/* A test in its own directory, removed afterwards: TEST(function) in place of cmocka_unit_test. */
#ifndef UNIT_SUPPORT_DIRECTORY_H
#define UNIT_SUPPORT_DIRECTORY_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

static char support_directory[64];
static int support_home = -1;

static inline int support_enter_directory(void **state)
{
	snprintf(support_directory, sizeof(support_directory), "/tmp/sojourn-unit-XXXXXX");
	support_home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return support_home >= 0 && mkdtemp(support_directory) && !chdir(support_directory) ? 0
											    : -1;
}

static inline int support_leave_directory(void **state)
{
	autoclosedir DIR *dir = opendir(support_directory);

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		unlink(entry->d_name);
	if (fchdir(support_home))
		return -1;
	close(support_home);
	return rmdir(support_directory);
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, support_enter_directory, support_leave_directory)

#endif
