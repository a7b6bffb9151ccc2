/* SPDX-License-Identifier: MIT */
/*
 * sojourn-lab: a server that does to its requests what it is told to and knows exactly when it did
 * it. The tests compare the observer with it; the demo observes it.
 *
 *   options, knobs            what is asked for (knobs: also per request)
 *   server                    what all models share
 *   model_*                   event | threads | prefork
 *   loop, event_*             serving from an epoll loop
 *   blocking*                 serving by blocking calls
 *   conn, udp                 the steps of an exchange
 *   protocol*, request, response   bytes to requests, requests to bytes
 *   truth, counters           what is known at the end
 */
#include <stdlib.h>

#include "server.h"

int main(int argc, char **argv)
{
	struct options options;
	struct server server;
	int status = options_parse(argc, argv, &options);
	int err;

	if (status != OPTIONS_GO_ON)
		return status;
	err = server_open(&server, &options);
	if (!err) {
		err = server_run(&server);
		/* What is known is worth having, whatever else went wrong. */
		if (server_finish(&server))
			err = -1;
	}
	server_close(&server);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
