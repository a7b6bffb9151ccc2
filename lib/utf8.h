/* SPDX-License-Identifier: MIT */
/* Text of elsewhere, such as the name that a process gives itself, as JSON and metrics must have it. */
#ifndef LIB_UTF8_H
#define LIB_UTF8_H

/* What is not UTF-8 has its foreign bytes replaced by '?', in place. */
void utf8_clean(char *text);

#endif
