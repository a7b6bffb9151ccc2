/* SPDX-License-Identifier: MIT */
/* The arguments of a request, the part of its target after `?`, and which routes take which. Used by http.c and routes.c. */
#ifndef OBSERVER_SINKS_HTTP_QUERY_H
#define OBSERVER_SINKS_HTTP_QUERY_H

#include <stdbool.h>

/* The arguments that any route takes, as bits. */
enum http_argument {
	HTTP_LEASE = 1 << 0,
	HTTP_LAST = 1 << 1,
	HTTP_STEP = 1 << 2,
	HTTP_PORT = 1 << 3,
	/* Of routes that load balancers and scrapers ask, with arguments of their own: any, known or not. */
	HTTP_ANY = 1 << 4,
};

#define HTTP_ARGUMENT_SHOWN 32 /* of a name that is not known, with its end */

/* Further inputs of an answer besides method and path; NULL: missing. */
struct http_query {
	bool now;			/* also answers that need a reading: none is under way */
	const char *accept;		/* the header */
	const char *lease;		/* arguments */
	const char *last, *step, *port; /* likewise */
	unsigned int given,
		twice; /* enum http_argument, as bits: once or more, and more than once */
	char unknown
		[HTTP_ARGUMENT_SHOWN]; /* the first argument of another name, in printable characters; "": none */
};

/* Take the next argument of a request. @value: NULL if it has no `=`. Both outlive @query. */
void http_query_take(struct http_query *query, const char *name, const char *value);

/*
 * Return what is wrong with an argument of @query for a route that takes @takes (enum http_argument, as bits), and its name in
 * *ret_name; NULL: nothing is.
 */
const char *http_query_refusal(const struct http_query *query, unsigned int takes,
			       const char **ret_name);

#endif
