// SPDX-License-Identifier: MIT
/* Texts that came from elsewhere and are shown to people. */
#include "sojourn/text.h"

void text_make_printable(char *text, char substitute)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = substitute;
}
