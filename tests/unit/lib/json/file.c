// SPDX-License-Identifier: MIT
/* lib/json/file.c: documents from and to files. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sojourn/run.h"
#include "support/directory.h"
#include "support/runs.h"

static unsigned int count_files(void)
{
	autoclosedir DIR *dir = opendir(".");
	unsigned int count = 0;

	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		count += entry->d_name[0] != '.';
	return count;
}

static void check_file(const char *path, const struct run *run)
{
	autorun struct run *again = NULL;
	autofree char *error = NULL, *before = run_to_json(run), *after = NULL;

	assert_int_equal(run_read(path, &again, &error), 0);
	after = run_to_json(again);
	assert_string_equal(before, after);
}

static void written_is_read(void **state)
{
	autorun struct run *run = support_full_run(), *other = support_driver_run();

	assert_int_equal(run_write(run, "a.json"), 0);
	check_file("a.json", run);
	assert_int_equal(run_write(other, "a.json"), 0);
	check_file("a.json", other);
	assert_int_equal(count_files(), 1);
}

static void mode_is_kept_and_umask_respected(void **state)
{
	autorun struct run *run = support_driver_run();
	mode_t mask = umask(027);
	struct stat file;

	assert_int_equal(run_write(run, "a.json"), 0);
	umask(mask);
	assert_int_equal(stat("a.json", &file), 0);
	assert_int_equal(file.st_mode & 07777, 0640);
	assert_int_equal(chmod("a.json", 0604), 0);
	assert_int_equal(run_write(run, "a.json"), 0);
	assert_int_equal(stat("a.json", &file), 0);
	assert_int_equal(file.st_mode & 07777, 0604);
}

static void links_and_devices_are_not_replaced(void **state)
{
	autorun struct run *run = support_driver_run();
	struct stat file;

	assert_int_equal(run_write(run, "a.json"), 0);
	assert_int_equal(symlink("a.json", "link"), 0);
	assert_int_equal(symlink("/dev/null", "null"), 0);
	assert_int_equal(run_write(run, "link"), 0);
	assert_int_equal(lstat("link", &file), 0);
	assert_true(S_ISLNK(file.st_mode));
	check_file("link", run);
	assert_int_equal(run_write(run, "null"), 0);
	assert_int_equal(lstat("null", &file), 0);
	assert_true(S_ISLNK(file.st_mode));
	assert_int_equal(stat("/dev/null", &file), 0);
	assert_true(S_ISCHR(file.st_mode));
}

static void failures_leave_nothing(void **state)
{
	autorun struct run *run = support_driver_run(), *again = NULL;
	autofree char *error = NULL;

	assert_int_equal(run_write(run, "missing/a.json"), -ENOENT);
	assert_int_equal(run_write(run, "/dev/full"), -ENOSPC);
	assert_int_equal(run_write(run, "."), -EISDIR);
	assert_int_equal(run_read("a.json", &again, &error), -ENOENT);
	assert_int_equal(run_read(".", &again, &error), -EISDIR);
	assert_null(again);
	assert_null(error);
	assert_int_equal(count_files(), 0);
}

/* The trial has the result of writing, and leaves no file. */
static void trying_leaves_all_as_it_is(void **state)
{
	static const char text[] = "before";
	autofree char *after = NULL;
	size_t length;

	assert_int_equal(run_try_write("a.json"), 0);
	assert_int_equal(run_try_write("-"), 0);
	assert_int_equal(run_try_write("/dev/null"), 0);
	assert_int_equal(run_try_write("missing/a.json"), -ENOENT);
	assert_int_equal(run_try_write("."), -EISDIR);
	assert_int_equal(run_try_write("/dev/null/a.json"), -ENOTDIR);
	assert_int_equal(count_files(), 0);
	assert_int_equal(run_write_text(text, "a.json"), 0);
	assert_int_equal(run_try_write("a.json"), 0);
	assert_int_equal(run_read_text("a.json", &after, &length), 0);
	assert_int_equal(length, strlen(text));
	assert_memory_equal(after, text, length);
	assert_int_equal(count_files(), 1);
	/* Opening a pipe would wait for a reader. */
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(run_try_write("pipe"), 0);
}

/*
 * Fork a child that writes to the pipe, with signals blocked as in a program that handles them
 * elsewhere.
 */
static pid_t write_to_pipe(const char *text)
{
	sigset_t mask, before;
	pid_t child;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &mask, &before), 0);
	child = fork();
	if (!child)
		_exit(run_write_text(text, "pipe") ? 1 : 0);
	assert_true(child > 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	return child;
}

/* Writing to a pipe waits for its reader, and that wait can be ended at any point. */
static void waiting_for_a_reader_can_be_ended(void **state)
{
	autofree char *large = calloc(1, 1 << 20);
	int status, reader;
	pid_t child;

	assert_non_null(large);
	memset(large, 'x', (1 << 20) - 1);
	assert_int_equal(mkfifo("pipe", 0600), 0);
	child = write_to_pipe("text");
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	/* With a reader that does not read. */
	reader = open("pipe", O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	child = write_to_pipe(large);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	close(reader);
}

static void a_pipe_gets_all(void **state)
{
	char read_back[16] = "";
	int status, reader;
	pid_t child;

	assert_int_equal(mkfifo("pipe", 0600), 0);
	child = write_to_pipe("the text");
	reader = open("pipe", O_RDONLY);
	assert_int_equal(read(reader, read_back, sizeof(read_back)), 8);
	assert_string_equal(read_back, "the text");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(reader);
}

static void endless_input_ends(void **state)
{
	autorun struct run *run = NULL;
	autofree char *error = NULL;

	assert_int_equal(run_read("/dev/zero", &run, &error), -EINVAL);
	assert_non_null(strstr(error, "longer than"));
}

/* Standard output and standard input, replaced by a file. */
static void dash_is_standard_input_and_output(void **state)
{
	autorun struct run *run = support_full_run();
	int out = dup(STDOUT_FILENO), in = dup(STDIN_FILENO), err;
	int file = open("a.json", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(out >= 0 && in >= 0 && file >= 0);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	err = run_write(run, "-");
	dup2(out, STDOUT_FILENO);
	assert_int_equal(err, 0);
	lseek(file, 0, SEEK_SET);
	dup2(file, STDIN_FILENO);
	check_file("-", run);
	dup2(in, STDIN_FILENO);
	close(file);
	close(in);
	close(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(written_is_read),
		TEST(mode_is_kept_and_umask_respected),
		TEST(links_and_devices_are_not_replaced),
		TEST(failures_leave_nothing),
		TEST(trying_leaves_all_as_it_is),
		TEST(waiting_for_a_reader_can_be_ended),
		TEST(a_pipe_gets_all),
		TEST(endless_input_ends),
		TEST(dash_is_standard_input_and_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
