/* SPDX-License-Identifier: MIT */
/*
 * The secret of a run whose results are stored at a NATS server. Its coordinator prints it, and never
 * sends it. The run's key is made from it, so a member, the server, or whoever reads its subjects knows
 * the key alone. The record has a seal that only the secret makes: its command line names files.
 */
#ifndef DRIVER_FLEET_CHANNEL_SEAL_H
#define DRIVER_FLEET_CHANNEL_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "sojourn/secret.h"

/* A keyed hash (HMAC-SHA-256) in hexadecimal. */
#define SEAL_LENGTH 64

/* Make the key of the run with this @secret. 0 or -errno. */
int seal_key(const char *secret, char ret_key[static SECRET_LENGTH + 1]);
/* Return @text with its seal before it; NULL: no memory. */
char *seal_put(const char *secret, const char *text);
/* Return the text after the seal; NULL: the seal is not that of this secret and text. */
const char *seal_open(const char *secret, const char *sealed, size_t length);

#endif
