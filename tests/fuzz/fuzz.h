/* SPDX-License-Identifier: MIT */
/* Code shared by the fuzz targets. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* if a target has one: before the first input */

static inline void require(bool condition)
{
	if (!condition)
		abort();
}

/* Call one of the @checks, selected by the first byte, with a copy of the rest as a text. */
static inline int fuzz_text(const uint8_t *data, size_t size, void (*const checks[])(char *text),
			    size_t count)
{
	autofree char *text = NULL;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	require(text != NULL);
	checks[data[0] % count](text);
	return 0;
}

#endif
