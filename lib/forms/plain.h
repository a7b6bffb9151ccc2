/* SPDX-License-Identifier: MIT */
/*
 * Forms for programs are read on terminals, too. Any text of a foreign document may have controls of the terminal.
 */
#ifndef LIB_FORMS_PLAIN_H
#define LIB_FORMS_PLAIN_H

#include <stdio.h>

/* Print what @print prints of @what, with '?' for each control but the ends of lines. 0 or -errno. */
int plain_print(int (*print)(const void *what, FILE *file), const void *what, FILE *file);

#endif
