/* SPDX-License-Identifier: MIT */
/* What is said of the first failure of a kind, for people: put together only then. Always valid UTF-8. */
#ifndef DRIVER_PAYLOAD_DETAIL_H
#define DRIVER_PAYLOAD_DETAIL_H

#include <stddef.h>
#include <stdint.h>

/* Appends to the text in @text; what does not fit into @size is left out. */
__attribute__((format(printf, 3, 4))) void detail_add(char *text, size_t size, const char *format,
						      ...);

/* "network is unreachable (ENETUNREACH)", of a code of libuv's, which are negative errnos. */
void detail_add_code(char *text, size_t size, int code);

/* "'HTTP/1.1 200 OK\r\nServ…'": what is not printable ASCII is escaped, what is long is cut. */
void detail_add_bytes(char *text, size_t size, const char *bytes, size_t length);

/* "7 bytes of the response had come" */
void detail_add_received(char *text, size_t size, uint64_t bytes);

#endif
