/* SPDX-License-Identifier: MIT */
/*
 * Attaches the programs of bpf/tcp/tls/clear.bpf.c to a library, with --tls. A probe is at a file, so it is
 * hit in each process that has it mapped, also in later ones.
 */
#ifndef OBSERVER_KERNEL_TLS_CLEAR_H
#define OBSERVER_KERNEL_TLS_CLEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;
struct sojourn_bpf;

/* Probes that are attached. All zeros: none. */
struct clear_probes {
	struct bpf_link **links;
	size_t count;
};

/*
 * The libraries that are known: how the names of their files begin; NULL: the program itself. The last ones are only known
 * for why nothing is seen of what they do.
 */
#define CLEAR_LIBRARIES 9
extern const char *const clear_libraries[CLEAR_LIBRARIES];

/* Where probes go in a file. */
#define CLEAR_PLACES_MAX 64
struct clear_places {
	struct clear_place {
		uint64_t offset;
		uint32_t probe; /* CLEAR_PROBE() */
		bool leaves;	/* the function returns here, or from here on */
	} list[CLEAR_PLACES_MAX];
	size_t count;
};

/* Descriptors that a probe takes: perf_event_open()'s, and the link's. */
#define CLEAR_DESCRIPTORS 2U

/*
 * Find the functions of @library, a place in clear_libraries, in the file that is open as @fd. Return 0, -ENOENT if it lacks
 * one, -ENOEXEC or -EFBIG if it cannot be that library (host/programs/elf.h), or -errno.
 */
int clear_find(int fd, size_t library, struct clear_places *ret_places);

/* Return why plain text of users of @library, a place in clear_libraries, is never seen; NULL: it may be. */
const char *clear_lacks(size_t library);

/* Return that @library seems to be in the program @fd, which does not name its functions; NULL: it is not, or that is not known. */
const char *clear_nameless(int fd, size_t library);

/* Attach to these places of that file. Return 0, or -errno, and none of the probes stays. */
int clear_attach(struct clear_probes *probes, const struct sojourn_bpf *skel, int fd,
		 const struct clear_places *places);
void clear_detach(struct clear_probes *probes);

/* Attach @program for a moment to a function of our own, which is not called. Return 0 or -errno. */
int clear_try(const struct bpf_program *program);
/* Return whether @program attaches so. */
bool clear_is_probe(const struct bpf_program *program);

/* Return why this kernel must not be probed; NULL: nothing is known against it. */
const char *clear_denied(void);

#endif
