/* SPDX-License-Identifier: MIT */
/* Texts that nobody can guess. */
#ifndef SOJOURN_SECRET_H
#define SOJOURN_SECRET_H

/* 128 bits, in hexadecimal. */
#define SECRET_LENGTH 32

/* 0 or -errno. */
int secret_make(char text[SECRET_LENGTH + 1]);

#endif
