/* SPDX-License-Identifier: MIT */
/* The registry: what speaks a protocol, and is chosen by the scheme of a URL. */
#ifndef DRIVER_ENGINES_H
#define DRIVER_ENGINES_H

#include "engine/engine.h"

/* All that there are; NULL ends the table. */
extern const struct engine *const engines[];

#endif
