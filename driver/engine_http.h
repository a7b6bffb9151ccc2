/* SPDX-License-Identifier: MIT */
/* The rows that engine_http.c adds to the table of engines. */
#ifndef DRIVER_ENGINE_HTTP_H
#define DRIVER_ENGINE_HTTP_H

#include "engine.h"

extern const struct engine engine_http;
extern const struct engine engine_https;

#endif
