/* SPDX-License-Identifier: MIT */
/* Numbers that are mostly zero or small, as few bytes; see packed.c. */
#ifndef OBSERVER_MODEL_KEPT_PACKED_H
#define OBSERVER_MODEL_KEPT_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* The most bytes that @words numbers take. */
#define PACKED_MOST(words) ((words) * 10)

/* Encode @words into @ret_bytes, which has room for PACKED_MOST(). Return the number of bytes. */
size_t packed_encode(const uint64_t *words, size_t count, uint8_t *ret_bytes);
/* Decode @count words. Return where the next ones begin. */
const uint8_t *packed_decode(const uint8_t *bytes, uint64_t *ret_words, size_t count);

/* A run whose services are packed: it waits for a later reading, from which it is subtracted. */
struct packed_run;

/*
 * Pack the services of @run, which is owned from now on, and has services only between packed_open() and packed_close().
 * Return NULL without memory: @run is then as before.
 */
struct packed_run *packed_new(struct run *run);
void packed_free(struct packed_run *packed);
DEFINE_CLEANUP(struct packed_run *, packed_free)

/* Return the memory in bytes. */
size_t packed_bytes(const struct packed_run *packed);

/* Make the services again, as far as run_subtract() needs them. 0 or -ENOMEM. */
int packed_open(struct packed_run *packed);
void packed_close(struct packed_run *packed);

#endif
