/* SPDX-License-Identifier: MIT */
/* Run documents for tests. All exit the test on lack of memory; run_free() frees them. */
#ifndef UNIT_SUPPORT_RUNS_H
#define UNIT_SUPPORT_RUNS_H

#include "sojourn/run.h"

/* A document with every member, all numbers different. */
struct run *support_full_run(void);

/* A document of the observer alone, with one service at port 8080. */
struct run *support_observer_run(void);
/* A matching document of the driver alone: 1,000 requests in 2 s. */
struct run *support_driver_run(void);

/* Append a service like support_observer_run()'s, with @exchanges of 124 µs + 6 µs each. */
struct run_service *support_add_service(struct run *run, uint16_t port, unsigned int exchanges);

/* Measure the stages after the residence, of @samples exchanges: 80 µs and 300 µs each. */
void support_send_stages(struct run_service *service, unsigned int samples);

/*
 * A merged document with both sides' samples: SUPPORT_SAMPLED exchanges, on ten connections in
 * turn. Times: 10 µs to the server, 20 µs in the socket queue, 100 µs of service (20 ms: one per
 * connection), 15 µs back. The server's clock is far ahead.
 */
struct run *support_sampled_run(void);
#define SUPPORT_SAMPLED	     1000U
#define SUPPORT_SAMPLED_EACH 100U

/* Add exchange @index of the connection from @port to such a document. */
void support_add_exchange(struct run *run, uint16_t port, uint32_t index, uint64_t start_ns);

/* Divide the service of all but @unknown exchanges: half running, a third runnable. */
void support_split(struct run_service *service, unsigned int unknown);

void support_miss_stage(struct run_service *service, unsigned int stage, const char *reason);

/* The start of a document as text, up to and without the comma after the duration. */
#define SUPPORT_RUN_HEAD                                                                       \
	"{\"schema\":\"sojourn.run/1\",\"buckets\":{\"layout\":\"log-linear\",\"sub_bits\":6," \
	"\"value_bits\":40},\"duration_ns\":1"

/* Assert that the @length bytes of @text are refused with an error, which is to be freed. */
void support_refuse(const char *text, size_t length, char **ret_error);

/* The same of a document whose service has @value as its @member; the error is @expected after the member's name. */
void support_refuse_member(const char *member, const char *value, const char *expected);

#endif
