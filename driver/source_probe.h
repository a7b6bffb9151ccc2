/* SPDX-License-Identifier: MIT */
/*
 * Whether connect() under IP_LOCAL_PORT_RANGE looks at every port (from Linux 6.8 on, 207184853dbd) or, as
 * from 6.3 to 6.7, first at those of one parity like without: found out, not told by the version.
 */
#ifndef DRIVER_SOURCE_PROBE_H
#define DRIVER_SOURCE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "source.h"

/* Chosen evenly from the range, all of them are of one parity once in 65,536. */
#define SOURCE_PROBE_PORTS 17U

/*
 * Lets connect() choose up to SOURCE_PROBE_PORTS of @range (see limits_port_range()) and stops at the first
 * two that differ in parity. Nothing is sent. How many were chosen is in *ret_count. -errno where that cannot be
 * had: no loopback, no TCP Fast Open, or a kernel before 6.3.
 */
int source_probe(uint32_t range, uint16_t ports[static SOURCE_PROBE_PORTS], size_t *ret_count);

/* What follows from that, with @err as the probe's answer: a doubt is for ports of our own choice. */
enum source_choice source_probe_judge(int err, const uint16_t *ports, size_t count);

#endif
