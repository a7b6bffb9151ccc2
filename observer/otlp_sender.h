/* SPDX-License-Identifier: MIT */
/*
 * Sends readings to an OpenTelemetry collector (OTLP over HTTP, JSON) from a process of its own, so that no
 * collector, name server or certificate ever keeps the observation waiting, and so that what speaks to a
 * network has no capability, is nobody where the observation is root, and knows no secret of the endpoint's.
 */
#ifndef OBSERVER_OTLP_SENDER_H
#define OBSERVER_OTLP_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"

#define OTLP_HEADERS 16
#define OTLP_SECRETS 3

/* Where to. Texts stay the caller's. */
struct otlp_target {
	const char *url; /* of the metrics, such as http://127.0.0.1:4318/v1/metrics */
	const char *ca;	 /* PEM of who signs the collector's certificate; NULL: the system's */
	char *headers[OTLP_HEADERS]; /* "Name: value", besides Content-Type */
	size_t header_count;
	const char *secrets[OTLP_SECRETS]; /* what its process must forget; NULL: nothing */
	uint64_t interval_ns;
};

struct otlp_sender;

/* Starts the process; before any thread is. 0 or -errno. -ENOSYS: there is no libcurl here. */
int otlp_sender_start(const struct otlp_target *target, struct otlp_sender **ret_sender);

/*
 * Gives it one reading, and never waits: 0; -EAGAIN: it has not taken the one before, so this one is left
 * out; or another -errno: the process has ended.
 */
int otlp_sender_push(struct otlp_sender *sender, const char *text);

/* The last one, which is worth waiting for: up to a second until it has taken the one before. */
int otlp_sender_push_last(struct otlp_sender *sender, const char *text);

/* Hands over what is left, and lets it finish, for at most three seconds. */
void otlp_sender_stop(struct otlp_sender *sender);
DEFINE_CLEANUP(struct otlp_sender *, otlp_sender_stop)

#endif
