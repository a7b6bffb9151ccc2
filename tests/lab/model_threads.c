// SPDX-License-Identifier: MIT
/* Model `threads`: blocking calls, a thread per connection. */
#include <err.h>
#include <string.h>

#include "server.h"

int model_threads(struct server *server)
{
	int err = blocking_run(server, true);

	if (err)
		warnx("threads: %s", strerror(-err));
	return err;
}
