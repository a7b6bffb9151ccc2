/* SPDX-License-Identifier: MIT */
/* How malloc() gets large memory from the kernel: while programs are loaded, and afterwards. */
#ifndef OBSERVER_KERNEL_HEAP_H
#define OBSERVER_KERNEL_HEAP_H

/*
 * Keep freed memory for the next allocation. Each object that is loaded reads the kernel's whole BTF, which takes some
 * 13 MB for a moment. Writing to fresh memory costs more than reading BTF into it.
 */
void heap_loading(void);

/*
 * Map large memory on its own, and return free memory to the kernel. Readings of many services are large, and mostly
 * zeros: memory fresh from the kernel takes only the pages that are written.
 */
void heap_running(void);

#endif
