// SPDX-License-Identifier: MIT
/* The end of a libuv loop; see loop.h. */
#include "loop.h"

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
