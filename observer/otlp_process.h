/* SPDX-License-Identifier: MIT */
/* The process that otlp_sender.c starts: takes readings, sends each until it is accepted or a newer one is there. */
#ifndef OBSERVER_OTLP_PROCESS_H
#define OBSERVER_OTLP_PROCESS_H

#include "otlp_sender.h"

/*
 * Readings come over @fd, a 32-bit length before each, until it is closed. Says there first whether it
 * works: 0 or -errno, 32 bits.
 */
_Noreturn void otlp_process(const struct otlp_target *target, int fd);

#endif
