/* SPDX-License-Identifier: MIT */
/* Reports without UTF-8. */
#ifndef LIB_REPORT_PAGE_ASCII_H
#define LIB_REPORT_PAGE_ASCII_H

#include <stdbool.h>

/* Replace each non-ASCII character by one ASCII character. */
void report_to_ascii(char *text);
bool report_locale_is_ascii(void);

#endif
