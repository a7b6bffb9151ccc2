// SPDX-License-Identifier: MIT
/* Messages to the user on standard error: each call writes one line at once. */
#include "sojourn/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/text.h"

static struct {
	const char *program;
	bool verbose;
} log_state = {.program = "sojourn"};

void log_open(const char *program, bool verbose)
{
	log_state.program = program;
	log_state.verbose = verbose;
}

bool log_is_verbose(void)
{
	return log_state.verbose;
}

/* @reason may be NULL. The locked stream keeps lines of threads apart. */
static void log_line(const char *severity, const char *reason, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

static void log_line(const char *severity, const char *reason, const char *format, va_list args)
{
	char message[2048];

	/* Quoted names may come from elsewhere: one line, without control characters. */
	vsnprintf(message, sizeof(message), format, args);
	text_make_printable(message, ' ');

	flockfile(stderr);
	fprintf(stderr, "%s: %s%s%s%s\n", log_state.program, severity, message, reason ? ": " : "",
		reason ? reason : "");
	fflush(stderr);
	funlockfile(stderr);
}

void log_print(const char *severity, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(severity, NULL, format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	va_list args;

	if (!log_state.verbose)
		return;
	va_start(args, format);
	log_line("debug: ", NULL, format, args);
	va_end(args);
}

int log_errno(int err, const char *format, ...)
{
	char buffer[128];
	va_list args;

	va_start(args, format);
	log_line("", strerror_r(err < 0 ? -err : err, buffer, sizeof(buffer)), format, args);
	va_end(args);
	return err;
}
