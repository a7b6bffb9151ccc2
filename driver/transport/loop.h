/* SPDX-License-Identifier: MIT */
/* A libuv loop's beginning and end, and the patience of those who wait for it. */
#ifndef DRIVER_TRANSPORT_LOOP_H
#define DRIVER_TRANSPORT_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

/* Asked several times a second: whether to give up waiting, as the user wants to leave. */
struct patience {
	bool (*is_over)(void *user);
	void *user;
};

/* Start a thread without signals, which belong to the main thread. 0 or -errno. */
int loop_thread(pthread_t *thread, void *(*run)(void *user), void *user);

/* Watch a signal. @handle has @data, and does not keep the loop alive. 0 or -errno. */
int loop_signal(uv_loop_t *loop, uv_signal_t *handle, uv_signal_cb call, int number, void *data);

/* Close all handles, and run their callbacks: uv_loop_close() can follow. */
void loop_close_handles(uv_loop_t *loop);

#endif
