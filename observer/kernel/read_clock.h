/* SPDX-License-Identifier: MIT */
/*
 * Asks the kernel whether TCP reads its clock at the end of each read. Up to 6.18 tcp_rcv_space_adjust() does; 6.19
 * dropped that (0ae1ac7335ca). No field and no version distinguishes the two, since fixes are ported back. So we send to ourselves,
 * wait, read, and look whether TCP's time is that of the read.
 */
#ifndef OBSERVER_KERNEL_READ_CLOCK_H
#define OBSERVER_KERNEL_READ_CLOCK_H

#include "skeleton.h"

/*
 * Ask, and let the programs use the answer (bpf/tcp/connection/clock.h). Call after the object was loaded and before its programs
 * are attached. It takes some milliseconds, in a network namespace of its own, which is gone afterwards. If it cannot
 * ask, as without CAP_SYS_ADMIN, the programs read the clock themselves. 0; -errno: this thread could not return to
 * its network namespace.
 */
int read_clock_ask(struct sojourn_bpf *skel);

#endif
