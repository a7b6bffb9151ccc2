/* SPDX-License-Identifier: MIT */
/* What the user asked for, checked. Neighbours: target.h (the URL), drive.h (carries it out). */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "assertion.h"
#include "expectation.h"
#include "ladder.h"
#include "match.h"
#include "observer.h"
#include "policy.h"
#include "framing.h"
#include "grpc.h"
#include "schedule.h"
#include "source.h"
#include "start.h"
#include "template.h"
#include "tls.h"

struct capture_list;
struct scenario;

enum options_action {
	OPTIONS_DRIVE,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

enum options_command {
	COMMAND_DRIVE,
	COMMAND_SWEEP,
	COMMAND_RUN,
};

/* Strings point into argv, except body, payload and headers, which options_clear() frees. */
struct options {
	enum options_action action;
	enum options_command command;
	const char *url;      /* NULL: that of the scenario's steps */
	uint32_t connections; /* the most at any time */
	struct shape ramp;    /* of them, closed loop; without segments: always as many */
	const char *connections_text;
	uint32_t processes;
	uint32_t threads;     /* of each process */
	uint64_t duration_ns; /* 0: until requests are through */
	uint64_t requests;    /* 0: until the duration is over */
	uint64_t warmup_ns;
	uint64_t cooldown_ns;
	uint64_t interval_ns;
	struct start_spec start;
	struct ladder ladder; /* without steps unless COMMAND_SWEEP, which goes through it */
	struct schedule_spec schedule;
	const char *rate_text; /* --rate as it was given */
	struct source_set sources;
	uint64_t timeout_ns;
	const char *method;
	const char **headers; /* "Name: value" */
	size_t header_count;
	char *body; /* NULL: none */
	size_t body_length;
	struct expectation expectation;
	struct tls_options tls;
	uint32_t streams; /* at a time on a connection */
	bool grpc;
	struct grpc_expectation grpc_expectation;
	bool method_given;
	const char *payload_option; /* that gave it; NULL: none, or it is a default */
	char *payload;		    /* NULL: none */
	size_t payload_length;
	bool payload_literal; /* no template */
	struct framing framing;
	struct {
		bool given; /* any of these */
		struct match match;
		uint32_t outstanding;	/* requests at a time on a socket */
		uint64_t retransmit_ns; /* 0: never */
	} datagrams;
	struct template_rows rows;
	bool no_template;
	bool think_distribution_given;
	bool new_connections; /* policy.requests is 1 */
	struct connection_policy policy;
	bool quiet;
	bool fail_fast;
	struct assertion *assertions;
	size_t assertion_count;
	const char *json_path; /* NULL: none; "-": standard output */
	const char *csv_path;  /* the same */
	const char *hlog_path; /* the same */
	struct observer_access observer;
	uint32_t samples;	/* kept to be joined; 0: none */
	bool keep_samples;	/* in the document, although they are joined */
	size_t slowest;		/* joined exchanges with their timeline */
	const char *trace_path; /* NULL: none */
	bool check_only;
	uint64_t given[2];	   /* on the command line: bits of the rows of all tables */
	struct scenario *scenario; /* NULL: one target, every request is the same; else owned */
	/* Of a scenario's step, borrowed: */
	struct template_variables variables;
	const struct capture_list *captures; /* NULL: none */
};

/*
 * Fills @ret_options from the command line. 0, or -EINVAL with a sentence in @ret_error (to be freed
 * by the caller) that names the option, the value and what is allowed; -ENOMEM.
 */
int options_parse(int argc, char **argv, struct options *ret_options, char **ret_error);
void options_clear(struct options *options);

/* Copies what says what is asked and expected of the server, and how; borrowed from @step. */
void options_take_request(struct options *options, const struct options *step);

/* What was given of a request so far is a default from now on, which what follows replaces. */
void options_inherit_request(struct options *options);

/* Whether the option of these @length characters, without --, stood on the command line. */
bool options_were_given(const struct options *options, const char *name, size_t length);

/* The first option of that kind that was given; NULL: none was. */
const char *options_request_given(const struct options *options);

/*
 * Whether they make sense for the engine of the target. -EINVAL with a sentence as above.
 */
int options_check(const struct options *options, const struct engine *engine, char **ret_error);

/* Whether standard output is for one of the files, and the text report has no place there. */
bool options_own_stdout(const struct options *options);

/* Prints what --help does. */
void options_help(enum options_command command, FILE *file);

#endif
