/* SPDX-License-Identifier: MIT */
/* The rows that engine_stream.c adds to the table of engines. */
#ifndef DRIVER_ENGINE_STREAM_H
#define DRIVER_ENGINE_STREAM_H

#include "engine.h"

extern const struct engine engine_tcp;
extern const struct engine engine_unix;

#endif
