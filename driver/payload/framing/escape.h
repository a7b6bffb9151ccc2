/* SPDX-License-Identifier: MIT */
/* Bytes written on a command line: text with escapes, and hexadecimal digits. */
#ifndef DRIVER_PAYLOAD_FRAMING_ESCAPE_H
#define DRIVER_PAYLOAD_FRAMING_ESCAPE_H

#include <stddef.h>

#define ESCAPE_FORMS "\\r \\n \\t \\0 \\\\ \\xHH"

/* Return 0, -EINVAL or -ENOMEM; the caller frees @ret_bytes. */
int escape_decode(const char *text, char **ret_bytes, size_t *ret_length);
/* Decode pairs of digits, skipping white space and ':' between them. */
int escape_decode_hex(const char *text, char **ret_bytes, size_t *ret_length);

#endif
