/* SPDX-License-Identifier: MIT */
/*
 * Attaches the programs of bpf/tcp/clear.bpf.c to a library, with --tls. A probe is at a file, so it is
 * hit in each process that has it mapped, also in later ones.
 */
#ifndef OBSERVER_KERNEL_CLEAR_H
#define OBSERVER_KERNEL_CLEAR_H

#include <stdbool.h>
#include <stddef.h>

struct bpf_link;
struct bpf_program;
struct sojourn_bpf;

/* Probes that are attached. All zeros: none. */
struct clear_probes {
	struct bpf_link **links;
	size_t count;
};

/*
 * Attach to the library whose file is open as @fd. Return 0, -ENOENT if it lacks the functions, -ENOEXEC or -EFBIG if
 * it cannot be one (host/elf.h), or -errno; then none of its probes stays.
 */
int clear_attach(struct clear_probes *probes, const struct sojourn_bpf *skel, int fd);
void clear_detach(struct clear_probes *probes);

/* Attach @program for a moment to a function of our own, which is not called. Return 0 or -errno. */
int clear_try(const struct bpf_program *program);
/* Return whether @program attaches so. */
bool clear_is_probe(const struct bpf_program *program);

/* Return why this kernel must not be probed; NULL: nothing is known against it. */
const char *clear_denied(void);

#endif
