// SPDX-License-Identifier: MIT
/* The face of `--otlp`; see otlp.h. */
#include "otlp.h"

#include <errno.h>
#include <stdlib.h>

#include "sojourn/log.h"

static void say(int error)
{
	log_errno(error, "--otlp: nothing is sent any more");
}

int otlp_open(const struct otlp_target *target, struct sink_otlp **ret_sink)
{
	int r = target->url ? sink_otlp_open(target, say, ret_sink) : 0;

	if (r == -ENOSYS)
		log_error("--otlp: libcurl is not here (Debian: libcurl4)");
	else if (r < 0)
		log_errno(r, "--otlp: cannot start the process that sends");
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
