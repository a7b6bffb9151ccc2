/* SPDX-License-Identifier: MIT */
/* Standard input, output and error as the caller has left them: closed, full, or a pipe that nobody reads. */
#ifndef SOJOURN_STREAMS_H
#define SOJOURN_STREAMS_H

/*
 * First of all in main(): opens /dev/null for those of the three that are closed. Or the first file that is opened
 * would be taken for one, and get what is meant for people.
 */
void streams_begin(void);

/*
 * Last of all: @status, or 1 where it was 0 and not all of standard output could be written, which is logged.
 */
int streams_end(int status);

#endif
