/* SPDX-License-Identifier: MIT */
/* The row that engine_null.c adds to the table of engines. */
#ifndef DRIVER_ENGINE_NULL_H
#define DRIVER_ENGINE_NULL_H

#include "engine.h"

extern const struct engine engine_null;

#endif
