/* SPDX-License-Identifier: MIT */
/* How a run is carried out: when it begins, by how many, and who looks on. */
#ifndef DRIVER_RUN_RUN_SETTINGS_H
#define DRIVER_RUN_RUN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observer.h"
#include "start.h"

/* Strings are borrowed, but for the observer's token. */
struct run_settings {
	uint32_t threads;
	struct start_spec start;
	struct observer_access observer;
	uint32_t samples;  /* kept to be joined; 0: none */
	bool keep_samples; /* in the document, although they are joined */
	size_t slowest;	   /* joined exchanges with their timeline */
	bool fail_fast;
	bool keep_trying; /* without a connection */
	bool quiet;
	bool no_tui; /* progress is a line, on a terminal, too */
};

#endif
