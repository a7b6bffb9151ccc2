// SPDX-License-Identifier: MIT
/* The list of processes, while some begin and others end. The processes are children, whose descriptors are known. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/process.h"
#include "unit.h"

#define LIMIT 64

/* Start a child that has @fds descriptors of LIMIT, until it is killed. */
static uint32_t start(int fds)
{
	char ready = 0;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		const struct rlimit limit = {LIMIT, LIMIT};

		if (dup2(ends[1], 0) < 0 || close_range(1, ~0U, 0) ||
		    setrlimit(RLIMIT_NOFILE, &limit))
			_exit(1);
		for (int count = 1; count < fds; count++)
			if (dup(0) < 0)
				_exit(1);
		if (write(0, "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &ready, 1), 1);
	close(ends[0]);
	return (uint32_t)pid;
}

static void stop(uint32_t pid)
{
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
}

static const struct resource_process *find(const struct process_list *list, uint32_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->entries[i].pid == pid)
			return &list->entries[i];
	return NULL;
}

static void those_that_begin_are_added(void **state)
{
	struct process_list list = {};
	uint32_t early = start(10), late;

	assert_int_equal(process_list(0, &list), 0);
	late = start(20);
	assert_null(find(&list, late));
	assert_int_equal(process_renew(0, &list), 0);
	assert_false(find(&list, early)->late);
	assert_true(find(&list, late)->late);
	assert_int_equal(find(&list, late)->fds, 20);
	assert_int_equal(find(&list, late)->limit, LIMIT);
	stop(early);
	stop(late);
	process_free(&list);
}

static void those_that_end_are_dropped(void **state)
{
	struct process_list list = {};
	uint32_t pid = start(40);

	assert_int_equal(process_list(0, &list), 0);
	stop(pid);
	assert_int_equal(process_renew(0, &list), 0);
	assert_null(find(&list, pid));
	process_free(&list);
}

/* Sixteen are kept, however many there are: the list must not grow with the time. */
static void those_that_were_full_are_kept(void **state)
{
	struct process_list list = {};
	uint32_t pids[20];
	size_t kept = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = start(60);
	assert_int_equal(process_list(0, &list), 0);
	assert_false(process_was_full(find(&list, pids[0])));
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		stop(pids[i]);
	assert_int_equal(process_renew(0, &list), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		const struct resource_process *process = find(&list, pids[i]);

		if (!process)
			continue;
		kept++;
		assert_true(process_was_full(process));
		assert_int_equal(process->fds, 0);
		assert_int_equal(process->most, 60);
	}
	assert_int_equal(kept, 16);
	process_free(&list);
}

/* With one process only, no other one is looked for. */
static void one_process_stays_the_only_one(void **state)
{
	struct process_list list = {};
	uint32_t pid = start(10);

	assert_int_equal(process_list(pid, &list), 0);
	assert_int_equal(process_renew(pid, &list), 0);
	assert_int_equal(list.count, 1);
	stop(pid);
	assert_int_equal(process_renew(pid, &list), 0);
	assert_int_equal(list.entries[0].fds, 0);
	process_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_begin_are_added),
		cmocka_unit_test(those_that_end_are_dropped),
		cmocka_unit_test(those_that_were_full_are_kept),
		cmocka_unit_test(one_process_stays_the_only_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
