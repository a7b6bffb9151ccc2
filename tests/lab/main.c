// SPDX-License-Identifier: MIT
/*
 * sojourn-lab: a server that treats its requests as configured and knows exactly when. The tests
 * compare the observer with it; the demo observes it.
 *
 *     options, knobs            the configuration (knobs: also per request)
 *     server                    code shared by all models
 *     model_*                   event | threads | prefork
 *     loop, event_*             serving from an epoll loop
 *     blocking*                 serving by blocking calls
 *     conn, udp                 the steps of an exchange
 *     protocol*, request, response   bytes to requests, requests to bytes
 *     truth, counters           the results
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
		/* Write the known data even after an error. */
		if (server_finish(&server))
			err = -1;
	}
	server_close(&server);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
