/* SPDX-License-Identifier: MIT */
/*
 * Protocols of --protocol, and their commands, which the kernel side counts (wire/command.h). Only names of these
 * tables are ever printed: nothing that a client sends becomes one.
 */
#ifndef OBSERVER_KERNEL_COMMANDS_H
#define OBSERVER_KERNEL_COMMANDS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/config.h"

struct sojourn_bpf;

/* Parse "redis" or "valkey:6380". Return NULL, or what is allowed. */
const char *commands_parse(const char *text, struct command_port *ret_port);

/* Return the protocol's name, as documents have it. */
const char *commands_protocol(uint16_t protocol);

/* Return the name of the command with this @id of @protocol, 0 to commands_count() - 1. */
const char *commands_name(uint16_t protocol, uint32_t id);
size_t commands_count(uint16_t protocol);

/* Put the names of all commands into the kernel side's table. 0 or -errno. */
int commands_fill(const struct sojourn_bpf *skel);

#endif
