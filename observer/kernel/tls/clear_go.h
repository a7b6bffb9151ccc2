/* SPDX-License-Identifier: MIT */
/* Where probes go in a program of Go that has crypto/tls in it, with --tls; see clear.h. */
#ifndef OBSERVER_KERNEL_TLS_CLEAR_GO_H
#define OBSERVER_KERNEL_TLS_CLEAR_GO_H

#include "clear.h"

/*
 * Find the functions in the file that is open as @fd, and the instructions by which they return. Return 0, -ENOENT if it is
 * no such program, -ENOTSUP if a function leaves in another way, or else as golang_find() (host/programs/golang.h). There is no
 * disassembler for other machines than amd64: -ENOENT.
 */
int clear_go_find(int fd, struct clear_places *ret_places);

#endif
