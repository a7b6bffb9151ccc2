/* SPDX-License-Identifier: MIT */
/* The running kernel's description of its own functions and types: BTF. */
#ifndef OBSERVER_KERNEL_BTF_H
#define OBSERVER_KERNEL_BTF_H

#include <stddef.h>

/*
 * Return the number of parameters of the kernel's function or tracepoint @name. -ENOENT: there is none;
 * another -errno: the kernel does not describe itself.
 */
int kernel_btf_parameters(const char *name);

/*
 * Look for the target of @hook, such as "tp_btf/tcp_probe" or "fexit/tcp_sendmsg+tcp_sendpage", in the kernel. Hooks
 * of other kinds are not checked. 0; -ENOENT: @reason names the missing part; -errno: there is no BTF to read.
 */
int kernel_btf_hook(const char *hook, char *reason, size_t size);

/*
 * Try to attach an empty fexit program, which hardened kernels and some architectures refuse. Return 0, or -errno. The
 * first answer is kept: it costs a small part of a trial with a program of ours.
 */
int kernel_btf_fexit(void);

/* Free what was read of BTF, 7 MB. A later question reads it again. */
void kernel_btf_release(void);

struct bpf_program;

/*
 * Let libbpf load the object of @program with the kernel's own types alone, if this process may not list those of its
 * modules. Listing takes CAP_SYS_ADMIN. Call before the object is loaded.
 */
void kernel_btf_without_modules(struct bpf_program *program);

#endif
