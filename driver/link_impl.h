/* SPDX-License-Identifier: MIT */
/* What link.c (bytes) and link_open.c (connecting) know of each other. */
#ifndef DRIVER_LINK_IMPL_H
#define DRIVER_LINK_IMPL_H

#include "link.h"

/* The stream to the server is there. */
void link_on_established(struct link *link);
void link_on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer);

#endif
