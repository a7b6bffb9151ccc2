/* SPDX-License-Identifier: MIT */
/* Open requests in HTTP/2: streams that the kernel side keeps. */
#ifndef OBSERVER_KERNEL_RUNNING_STREAMS_H
#define OBSERVER_KERNEL_RUNNING_STREAMS_H

#include "services.h"

/* Add the streams whose request was read and not answered to @opens, an element per service. 0 or -errno. */
int streams_add(const struct services *services, struct service_open *opens);

#endif
