/* SPDX-License-Identifier: MIT */
/* Texts that came from elsewhere and are shown to people. */
#ifndef SOJOURN_TEXT_H
#define SOJOURN_TEXT_H

/* Puts @substitute for whatever would end the line or control a terminal. UTF-8 stays as it is. */
void text_make_printable(char *text, char substitute);

#endif
