// SPDX-License-Identifier: MIT
/* Which option would make streams of HTTP/2 exchanges; see remedy.h. */
#include "sojourn/remedy.h"

#include <string.h>

#include "sojourn/cleanup.h"

/* Return whether --tls was given: then each process says what was found in it. */
static bool looks_into_tls(const struct run_service *service)
{
	for (size_t i = 0; i < service->process_count; i++)
		if (service->processes[i].tls[0])
			return true;
	return false;
}

enum run_remedy run_http2_remedy(const struct run_service *service)
{
	static const struct {
		const char *reason;
		enum run_remedy remedy;
	} reasons[] = {
		{RUN_REASON_NO_HTTP2, RUN_REMEDY_NO_HTTP2},
		{RUN_REASON_HTTP, RUN_REMEDY_HTTP},
	};
	const struct run_http2 *http2 = &service->http2;

	if (service->tls && !http2->connections.value)
		return looks_into_tls(service) ? RUN_REMEDY_TLS_SHOWS : RUN_REMEDY_TLS;
	for (size_t i = 0; http2->reason && i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(http2->reason, reasons[i].reason))
			return reasons[i].remedy;
	return http2->older.value ? RUN_REMEDY_FROM_START : RUN_REMEDY_NONE;
}
