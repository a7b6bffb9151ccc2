/* SPDX-License-Identifier: MIT */
/* The row that engine_udp.c adds to the table of engines. */
#ifndef DRIVER_ENGINE_UDP_H
#define DRIVER_ENGINE_UDP_H

#include "engine.h"

extern const struct engine engine_udp;

#endif
