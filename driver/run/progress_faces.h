/* SPDX-License-Identifier: MIT */
/* Progress drawn as a line or screen; for progress.c. */
#ifndef DRIVER_RUN_PROGRESS_FACES_H
#define DRIVER_RUN_PROGRESS_FACES_H

#include "progress.h"

void progress_line_print(const struct progress *progress);
void progress_line_clear(const struct progress *progress);

/* The screen is open. */
void progress_view_draw(const struct progress *progress);

#endif
