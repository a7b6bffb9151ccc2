/* SPDX-License-Identifier: MIT */
/* Words between two processes over a socket of whole messages (SOCK_SEQPACKET), each perhaps with an open file. */
#ifndef OBSERVER_PROCESS_PASSING_H
#define OBSERVER_PROCESS_PASSING_H

#include <stdint.h>

/* Send @word, and with it @fd (-1: none); @flags are those of send(2). 0 or -errno. */
int passing_send(int socket, int32_t word, int fd, int flags);

/* Wait for the next word. -EPIPE: none will come. *@ret_fd is -1 if no file came with it. */
int passing_receive(int socket, int32_t *ret_word, int *ret_fd);

#endif
