/* SPDX-License-Identifier: MIT */
/* JSON values that are released at the end of their scope; see cleanup.h. */
#ifndef SOJOURN_AUTOJSON_H
#define SOJOURN_AUTOJSON_H

#include <jansson.h>

#include "sojourn/cleanup.h"

DEFINE_CLEANUP(json_t *, json_decref)
#define autojson CLEANUP(cleanup_json_decref)

#endif
