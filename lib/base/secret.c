// SPDX-License-Identifier: MIT
/* The kernel's random bytes as text; see secret.h. */
#include "sojourn/secret.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

int secret_make(char text[SECRET_LENGTH + 1])
{
	unsigned char bytes[SECRET_LENGTH / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}
