/* SPDX-License-Identifier: MIT */
/* How modules pass a reason for people to the top layer, which alone logs it. */
#ifndef SOJOURN_REFUSE_H
#define SOJOURN_REFUSE_H

/*
 * Store the sentence in @ret_error, freed by the caller, and return -EINVAL (or -ENOMEM). "-EINVAL
 * with @ret_error" means this.
 */
__attribute__((format(printf, 2, 3))) int refuse(char **ret_error, const char *format, ...);

#endif
