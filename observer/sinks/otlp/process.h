/* SPDX-License-Identifier: MIT */
/* The process that sink.c starts: takes readings, sends each until it is accepted or a newer one is there. */
#ifndef OBSERVER_SINKS_OTLP_PROCESS_H
#define OBSERVER_SINKS_OTLP_PROCESS_H

#include "sink.h"

/*
 * Take readings from @fd, each as a file in memory, until it is closed. The first message sent there
 * says whether the process works: 0 or -errno, 32 bits.
 */
_Noreturn void otlp_process(const struct otlp_target *target, int fd);

#endif
