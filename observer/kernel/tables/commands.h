/* SPDX-License-Identifier: MIT */
/*
 * Protocols of --protocol, and their commands, which the kernel side counts (wire/command.h). Only names of these
 * tables are ever printed: nothing that a client sends becomes one.
 */
#ifndef OBSERVER_KERNEL_TABLES_COMMANDS_H
#define OBSERVER_KERNEL_TABLES_COMMANDS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/config.h"

struct sojourn_bpf;

/* Parse "redis" or "postgresql:5433". Return NULL, or what is allowed. */
const char *commands_parse(const char *text, struct command_port *ret_port);

/* Return the protocol's name, as documents have it. */
const char *commands_protocol(uint16_t protocol);

/* Return the protocol that is given for services at @port: enum command_protocol. */
uint16_t commands_at(const struct observer_config *config, uint16_t port);

/*
 * Return how many rows there are for commands of @protocol by @places, and set the name of each; [0] has none, it is
 * that of others. Later there are more, after these.
 */
uint32_t commands_rows(uint16_t protocol, const uint64_t *places,
		       const char *ret_names[static COMMAND_ROWS]);

/* Put the names of all commands into the kernel side's table. 0 or -errno. */
int commands_fill(const struct sojourn_bpf *skel);

#endif
