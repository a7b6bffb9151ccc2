// SPDX-License-Identifier: MIT
/* Parsing of requests shared by the protocols. */
#include "request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void request_init(struct request *request, const struct knobs *defaults)
{
	request->knobs = *defaults;
	request->bad = false;
	request->hopeless = false;
	request->last = false;
	request->payload = NULL;
	request->payload_length = 0;
	request->head = false;
	request->old = false;
}

void request_refuse(struct request *request, unsigned int status, const char *format, ...)
{
	va_list args;

	request->bad = true;
	request->status = status;
	/* An error is answered at once and in one piece, whatever was requested before. */
	knobs_init(&request->knobs);
	va_start(args, format);
	vsnprintf(request->complaint.text, sizeof(request->complaint.text), format, args);
	va_end(args);
}

void request_set_knobs(struct request *request, const char *text, size_t length,
		       enum knob_scope scope)
{
	struct complaint complaint;

	if (knobs_parse(&request->knobs, text, length, scope, &complaint))
		request_refuse(request, 400, "error: %.150s", complaint.text);
}

static bool is_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

void request_set_payload(struct request *request, const char *payload, size_t length,
			 enum knob_scope scope)
{
	request->payload = payload;
	request->payload_length = length;
	if (memchr(payload, '=', length) && is_printable(payload, length))
		request_set_knobs(request, payload, length, scope);
}
