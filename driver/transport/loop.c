// SPDX-License-Identifier: MIT
/* Threads, signals and the end of a libuv loop; see loop.h. */
#include "loop.h"

#include <signal.h>

int loop_thread(pthread_t *thread, void *(*run)(void *user), void *user)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(thread, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int loop_signal(uv_loop_t *loop, uv_signal_t *handle, uv_signal_cb call, int number, void *data)
{
	int err = uv_signal_init(loop, handle);

	if (err)
		return err;
	handle->data = data;
	uv_unref((uv_handle_t *)handle);
	return uv_signal_start(handle, call, number);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_close_handles(uv_loop_t *loop)
{
	uv_walk(loop, close_handle, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
}
