/* SPDX-License-Identifier: MIT */
/* What is said of the first failure of a kind, for people: put together only then. Always valid UTF-8. */
#ifndef DRIVER_DETAIL_H
#define DRIVER_DETAIL_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* Appends to the text in @text; what does not fit into @size is left out. */
__attribute__((format(printf, 3, 4))) void detail_add(char *text, size_t size, const char *format,
						      ...);

/* "network is unreachable (ENETUNREACH)", of a code of libuv's, which are negative errnos. */
void detail_add_code(char *text, size_t size, int code);

/* "'HTTP/1.1 200 OK\r\nServ…'": what is not printable ASCII is escaped, what is long is cut. */
void detail_add_bytes(char *text, size_t size, const char *bytes, size_t length);

/* "7 bytes of the response had come" */
void detail_add_received(char *text, size_t size, uint64_t bytes);

/* "step a: ", where @slot is a client of a scenario that has a name for what it does. */
void detail_add_step(char *text, size_t size, const struct engine_host *host, uint32_t slot);

/* All that is known of @result without asking its engine: its code, or its constant. */
void detail_add_result(char *text, size_t size, const struct engine_result *result);

#endif
