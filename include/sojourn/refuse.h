/* SPDX-License-Identifier: MIT */
/* How modules hand a reason for people to the top layer, which alone logs it. */
#ifndef SOJOURN_REFUSE_H
#define SOJOURN_REFUSE_H

/* Stores the sentence in @ret_error, to be freed by the caller, and returns -EINVAL (or -ENOMEM). */
__attribute__((format(printf, 2, 3))) int refuse(char **ret_error, const char *format, ...);

#endif
