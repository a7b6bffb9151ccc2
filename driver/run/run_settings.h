/* SPDX-License-Identifier: MIT */
/* Settings of a run: its start, threads, observer and progress. */
#ifndef DRIVER_RUN_RUN_SETTINGS_H
#define DRIVER_RUN_RUN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observer.h"
#include "start.h"

/* Strings are borrowed, except the observers' URLs and token. */
struct run_settings {
	uint32_t threads;
	struct start_spec start;
	struct observer_access observers;
	uint32_t samples;  /* to be joined; 0: none */
	bool keep_samples; /* in the document, after joining */
	size_t slowest;	   /* joined exchanges shown with their timeline */
	bool fail_fast;
	bool keep_trying; /* without a connection */
	bool quiet;
	bool no_tui; /* progress is a line even on a terminal */
};

#endif
