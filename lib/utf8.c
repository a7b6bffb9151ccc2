/* SPDX-License-Identifier: MIT */
/* Makes UTF-8 of what claims to be; see utf8.h. */
#include "utf8.h"

#include <jansson.h>

void utf8_clean(char *text)
{
	json_t *json = json_string(text);

	json_decref(json);
	for (char *c = text; !json && *c; c++)
		if (*c & 0x80)
			*c = '?';
}
