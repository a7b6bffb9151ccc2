/* SPDX-License-Identifier: MIT */
/* Standard streams as the caller left them: closed, full, or a pipe without a reader. */
#ifndef SOJOURN_STREAMS_H
#define SOJOURN_STREAMS_H

/*
 * Open /dev/null for closed standard streams, first of all in main(). Otherwise the next file
 * opened would receive their output. A file that may not get larger (ulimit -f) is an error from
 * then on, and no signal.
 */
void streams_begin(void);

/*
 * Return @status, or 1 instead of 0 if standard output could not be written completely, which is
 * logged. Call last.
 */
int streams_end(int status);

#endif
