// SPDX-License-Identifier: MIT
/* Frees everything that a request owns. */
#include "request.h"

#include <stdlib.h>

void request_clear(struct request *request)
{
	free(request->headers);
	free(request->body);
	free(request->payload);
	template_rows_clear(&request->rows);
	expectation_clear(&request->expectation);
	*request = (struct request){0};
}
