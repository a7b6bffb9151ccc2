/* SPDX-License-Identifier: MIT */
/* The rows that engine_h2.c adds to the table of engines. */
#ifndef DRIVER_ENGINE_H2_H
#define DRIVER_ENGINE_H2_H

#include "engine.h"

extern const struct engine engine_h2;
extern const struct engine engine_h2c;

#endif
