// SPDX-License-Identifier: MIT
/* The table of engines: see engine/engine.h. */
#include "engines.h"

const struct engine *const engines[] = {
	&engine_http, &engine_https, &engine_h2,   &engine_h2c, &engine_tcp,
	&engine_udp,  &engine_unix,  &engine_null, NULL,
};
