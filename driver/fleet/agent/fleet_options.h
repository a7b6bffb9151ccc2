/* SPDX-License-Identifier: MIT */
/*
 * The command lines of `sojourn-drive fleet` and `sojourn-drive agent`. options.h has the options
 * after "--".
 */
#ifndef DRIVER_FLEET_AGENT_FLEET_OPTIONS_H
#define DRIVER_FLEET_AGENT_FLEET_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ceilings.h"
#include "nats/nats.h"
#include "run/observer.h"
#include "sojourn/clock.h"

#define FLEET_HOSTS_MAX 1024U

/* How long to wait for agents over NATS, if nothing else is given. */
#define FLEET_GATHER_NS (5 * NSEC_PER_SEC)

enum fleet_on_loss {
	FLEET_LOSS_STOP,
	FLEET_LOSS_CONTINUE,
};

/* Owns its words; fleet_options_clear() frees them. */
struct fleet_options {
	bool help;
	const char *resume; /* the key of a run that is taken up; NULL: a new one */
	char **via;	    /* the words of --via, then a NULL */
	size_t via_count;
	char **hosts; /* NULL: agents that answer over NATS */
	size_t host_count;
	uint32_t members; /* also of hosts */
	struct nats_settings nats;
	uint64_t gather_ns; /* how long to wait for agents over NATS; 0: not given */
	const char *agent_program;
	enum fleet_on_loss on_loss;
	uint64_t lost_after_ns;
};

struct agent_options {
	bool help;
	struct ceilings ceilings;
	struct nats_settings nats; /* without a URL: standard input and output are the channel */
	const char *name;	   /* NULL: the host's */
	bool once;
	struct observer_access observers; /* one URL: it is the agent of this observer */
	const char *sees; /* "10.0.0.0/8,host:80": targets beside the host's own; NULL: none */
};

/*
 * Parse argv[1…]. *@ret_rest is the index of "--", which takes the place of argv[0] for the words
 * after it. With options->help it is unset. 0; -EINVAL with a sentence in @ret_error; -ENOMEM.
 */
int fleet_options_parse(int argc, char **argv, struct fleet_options *ret_options, int *ret_rest,
			char **ret_error);
void fleet_options_clear(struct fleet_options *options);
void fleet_options_help(FILE *file);
/* Return the first of @words, which end with a NULL, that is an option of fleet; NULL: none is. */
const char *fleet_options_find(char *const *words);

/* Parse argv[1…]. Errors as above. */
int agent_options_parse(int argc, char **argv, struct agent_options *ret_options, char **ret_error);
void agent_options_clear(struct agent_options *options);
void agent_options_help(FILE *file);

/* Settle the NATS server of the observers of a run without one of a fleet. Errors as above. */
int fleet_options_observers(const struct observer_access *access, struct nats_settings *ret_nats,
			    char **ret_error);

/*
 * Return one member's command, NULL-terminated: the words of --via with the host in place of
 * {host}, then the agent. run_strings_free() frees it.
 */
char **fleet_options_command(const struct fleet_options *options, const char *host);
/* Return whether --via has {host}. If not, all members have the same command. */
bool fleet_options_names_host(const struct fleet_options *options);

#endif
