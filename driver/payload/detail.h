/* SPDX-License-Identifier: MIT */
/* A description of the first failure of a kind, for people. Always valid UTF-8. */
#ifndef DRIVER_PAYLOAD_DETAIL_H
#define DRIVER_PAYLOAD_DETAIL_H

#include <stddef.h>
#include <stdint.h>

/* Append to @text; text beyond @size is cut. */
__attribute__((format(printf, 3, 4))) void detail_add(char *text, size_t size, const char *format,
						      ...);

/* Append "network is unreachable (ENETUNREACH)"; libuv's codes are negative errnos. */
void detail_add_code(char *text, size_t size, int code);

/* Append "'HTTP/1.1 200 OK\r\nServ…'": unprintable bytes escaped, a long text cut. */
void detail_add_bytes(char *text, size_t size, const char *bytes, size_t length);

/* Append "7 bytes of the response had come". */
void detail_add_received(char *text, size_t size, uint64_t bytes);

#endif
