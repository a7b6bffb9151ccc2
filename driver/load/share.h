/* SPDX-License-Identifier: MIT */
/* Each worker's share of all slots or connections, dealt out in turn. */
#ifndef DRIVER_LOAD_SHARE_H
#define DRIVER_LOAD_SHARE_H

#include <stdint.h>

/* Return the share of worker @index, below @count. */
static inline uint32_t share_of(uint32_t slots, uint32_t count, uint32_t index)
{
	return slots / count + (index < slots % count);
}

/* Return the shares of all workers before @index. */
static inline uint32_t share_before(uint32_t slots, uint32_t count, uint32_t index)
{
	uint32_t rest = slots % count;

	return slots / count * index + (index < rest ? index : rest);
}

/* As share_of(), of any count. */
static inline uint64_t share_of_count(uint64_t all, uint32_t count, uint32_t index)
{
	return all / count + (index < all % count);
}

/*
 * Return a thread's index among the threads of all drivers. Threads alternate between drivers, so
 * that each driver has every n-th intended start, as if it had one thread.
 */
static inline uint32_t share_sharer(uint32_t driver, uint32_t drivers, uint32_t thread)
{
	return thread * drivers + driver;
}

/* Return the share of all @threads of one driver. */
static inline uint32_t share_of_driver(uint32_t slots, uint32_t threads, uint32_t drivers,
				       uint32_t driver)
{
	uint32_t sum = 0;

	for (uint32_t thread = 0; thread < threads; thread++)
		sum += share_of(slots, threads * drivers, share_sharer(driver, drivers, thread));
	return sum;
}

#endif
