/* SPDX-License-Identifier: MIT */
/* Programs that do nothing, on our hooks: the cost of entering and leaving any program. */
#ifndef OBSERVER_PROBE_EMPTY_H
#define OBSERVER_PROBE_EMPTY_H

#include <stdint.h>

struct empty {
	int program_fd; /* -1: none */
	int link_fd;	/* -1: not attached */
};

/*
 * Load one for @hook, as named by loader.h, without attaching it. -EOPNOTSUPP: a hook that no
 * request passes.
 */
int empty_open(const char *hook, struct empty *ret_empty);
void empty_close(struct empty *empty);

/* 0 or -errno. */
int empty_attach(struct empty *empty);
void empty_detach(struct empty *empty);

/* Read its runs and their time by the kernel's run statistics. 0 or -errno. */
int empty_read(const struct empty *empty, uint64_t *ret_runs, uint64_t *ret_run_ns);

#endif
