// SPDX-License-Identifier: MIT
/*
 * Ends a target whose input takes too much CPU time. libFuzzer's own limit, -timeout, is of the time that passes. Beside
 * other programs it ends inputs that merely got no CPU.
 */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "fuzz.h"

#define LIMIT_MS 20000

int __real_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer keeps the input of a program that aborts, and prints where it was. */
static void on_limit(int number)
{
	static const char text[] = "fuzz: this input takes too much CPU time\n";

	(void)number;
	(void)!write(STDERR_FILENO, text, strlen(text));
	abort();
}

static void set_limit(long ms)
{
	const struct itimerval limit = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};

	require(!setitimer(ITIMER_PROF, &limit, NULL));
}

/* The tool's own test has a lower one. */
static long limit_ms(void)
{
	const char *text = getenv("SOJOURN_FUZZ_LIMIT_MS");

	return text ? strtol(text, NULL, 10) : LIMIT_MS;
}

/* The linker calls this for each input (--wrap): see CMakeLists.txt. */
int __wrap_LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sigaction action = {.sa_handler = on_limit};
	static long ms;
	int r;

	if (!ms)
		require(!sigaction(SIGPROF, &action, NULL));
	ms = ms ? ms : limit_ms();
	set_limit(ms);
	r = __real_LLVMFuzzerTestOneInput(data, size);
	set_limit(0);
	return r;
}
