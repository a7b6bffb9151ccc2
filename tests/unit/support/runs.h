/* SPDX-License-Identifier: MIT */
/* Run documents for tests. All of them exit the test on lack of memory; run_free() frees them. */
#ifndef UNIT_SUPPORT_RUNS_H
#define UNIT_SUPPORT_RUNS_H

#include "sojourn/run.h"

/* A document in which every member is there, and every number differs from all others. */
struct run *support_full_run(void);

/* A document of the observer alone, with one service at port 8080, as the example has it. */
struct run *support_observer_run(void);
/* A document of the driver alone that fits it: 1,000 requests in 2 s. */
struct run *support_driver_run(void);

/* Appends a service like support_observer_run()'s, with @exchanges of 124 µs + 6 µs each. */
struct run_service *support_add_service(struct run *run, uint16_t port, unsigned int exchanges);

/* Measures the stages behind the residence, of @samples exchanges: 80 µs and 300 µs each. */
void support_send_stages(struct run_service *service, unsigned int samples);

/*
 * A merged document with the samples of both sides: SUPPORT_SAMPLED exchanges, on ten connections in
 * turn. 10 µs there, 20 µs in the socket queue, 100 µs of service (20 ms: one of each connection), 15 µs
 * back; the server's clock is far ahead of the driver's.
 */
struct run *support_sampled_run(void);
#define SUPPORT_SAMPLED	     1000U
#define SUPPORT_SAMPLED_EACH 100U

/* Adds exchange @index of the connection from @port to such a document. */
void support_add_exchange(struct run *run, uint16_t port, uint32_t index, uint64_t start_ns);

/* Divides the service of all but @unknown exchanges: half running, a third runnable. */
void support_split(struct run_service *service, unsigned int unknown);

/* Makes @stage of @service missing. */
void support_miss_stage(struct run_service *service, unsigned int stage, const char *reason);

/* The beginning of a document in text, up to and without the comma after the duration. */
#define SUPPORT_RUN_HEAD                                                                       \
	"{\"schema\":\"sojourn.run/1\",\"buckets\":{\"layout\":\"log-linear\",\"sub_bits\":6," \
	"\"value_bits\":40},\"duration_ns\":1"

/* Asserts that the @length bytes of @text are refused with an error, which is to be freed. */
void support_refuse(const char *text, size_t length, char **ret_error);

/* Asserts that both are the same, to the byte, or both NULL. */
void support_compare_samples(const struct run_samples *a, const struct run_samples *b);

#endif
