/* SPDX-License-Identifier: MIT */
/* Messages of libbpf and the verifier about the programs that loader.c loads. */
#ifndef OBSERVER_KERNEL_MESSAGE_H
#define OBSERVER_KERNEL_MESSAGE_H

#include <stdbool.h>

/* Forget earlier messages, and listen. */
void loader_message_begin(void);

/*
 * Return the first error message since loader_message_begin(), with the verifier's verdict; empty if there was none.
 */
const char *loader_message(void);

/* Return whether that message is about @program. */
bool loader_message_blames(const char *program);

#endif
