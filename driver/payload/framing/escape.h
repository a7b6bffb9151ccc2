/* SPDX-License-Identifier: MIT */
/* Bytes as people write them on a command line: text with escapes, and hexadecimal digits. */
#ifndef DRIVER_PAYLOAD_FRAMING_ESCAPE_H
#define DRIVER_PAYLOAD_FRAMING_ESCAPE_H

#include <stddef.h>

#define ESCAPE_FORMS "\\r \\n \\t \\0 \\\\ \\xHH"

/* Both: -EINVAL or -ENOMEM; @ret_bytes is freed by the caller. */
int escape_decode(const char *text, char **ret_bytes, size_t *ret_length);
/* Pairs of digits; white space and ':' between them is skipped. */
int escape_decode_hex(const char *text, char **ret_bytes, size_t *ret_length);

#endif
