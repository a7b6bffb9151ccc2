/* SPDX-License-Identifier: MIT */
/* Documents of any kind to files; see run_file.c. */
#ifndef LIB_RUN_FILE_H
#define LIB_RUN_FILE_H

/* Writes @text to @path, replacing a regular file atomically; "-" is standard output. -errno. */
int run_write_text(const char *text, const char *path);

#endif
