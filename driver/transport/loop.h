/* SPDX-License-Identifier: MIT */
/* The end of a libuv loop. */
#ifndef DRIVER_TRANSPORT_LOOP_H
#define DRIVER_TRANSPORT_LOOP_H

#include <uv.h>

/* Close all handles, and run their callbacks: uv_loop_close() can follow. */
void loop_close_handles(uv_loop_t *loop);

#endif
