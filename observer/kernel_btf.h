/* SPDX-License-Identifier: MIT */
/* What the running kernel says of its own functions: BTF, its description of its types. */
#ifndef OBSERVER_KERNEL_BTF_H
#define OBSERVER_KERNEL_BTF_H

/*
 * How many parameters the kernel's function @name has; -ENOENT if there is no such function, or
 * another -errno if the kernel does not describe itself.
 */
int kernel_btf_parameters(const char *name);

#endif
