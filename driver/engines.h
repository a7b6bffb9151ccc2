/* SPDX-License-Identifier: MIT */
/* The registry of engines, chosen by the scheme of a URL. */
#ifndef DRIVER_ENGINES_H
#define DRIVER_ENGINES_H

#include "engine/engine.h"

/* NULL ends the table. */
extern const struct engine *const engines[];

#endif
