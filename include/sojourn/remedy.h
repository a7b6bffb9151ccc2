/* SPDX-License-Identifier: MIT */
/*
 * Why streams of HTTP/2 are not exchanges, and which option of the observer would make them so. The observer writes the
 * reasons, reports and the live view name the option. Neighbour: run.h.
 */
#ifndef SOJOURN_REMEDY_H
#define SOJOURN_REMEDY_H

#include "sojourn/run.h"

/* Values of http2.reason that an option changes. */
#define RUN_REASON_NO_HTTP2 "not asked for: --no-http2"
#define RUN_REASON_HTTP	    "not asked for: --http"

enum run_remedy {
	RUN_REMEDY_NONE, /* no option is known to help */
	RUN_REMEDY_TLS,	 /* --tls */
	RUN_REMEDY_TLS_SHOWS, /* none: --tls was given, and does not show the text of these connections */
	RUN_REMEDY_NO_HTTP2,   /* to leave out --no-http2 */
	RUN_REMEDY_HTTP,       /* --http */
	RUN_REMEDY_FROM_START, /* --http, which follows streams from the observer's start */
	RUN_REMEDY_COUNT
};

/* Of a service with connections that are `multiplexed`. */
enum run_remedy run_http2_remedy(const struct run_service *service);

#endif
