// SPDX-License-Identifier: MIT
/* How rules report what is broken, and where; see checking.h. */
#include "checking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"

void check_say(struct checking *checking, const char *format, ...)
{
	autofree char *text = NULL, *sentence = NULL;
	va_list args;

	va_start(args, format);
	text = text_format_args(format, args);
	va_end(args);
	if (text)
		sentence = text_format("%s: %s", checking->rule, text);
	if (!sentence || run_add_text(checking->broken, sentence))
		checking->error = -ENOMEM;
}

void check_at_most(struct checking *checking, const char *place, const char *left_name,
		   uint64_t left, const char *right_name, uint64_t right)
{
	if (left > right)
		check_say(checking, "%s: %s is %" PRIu64 ", must be at most %s, which is %" PRIu64,
			  place, left_name, left, right_name, right);
}

void check_same(struct checking *checking, const char *place, const char *left_name, uint64_t left,
		const char *right_name, uint64_t right)
{
	if (left != right)
		check_say(checking, "%s: %s is %" PRIu64 ", must be %s, which is %" PRIu64, place,
			  left_name, left, right_name, right);
}

void check_place_of(const struct run_service *service, char ret_place[static CHECK_PLACE])
{
	snprintf(ret_place, CHECK_PLACE, "%s port %" PRIu16 "%s%s", service->protocol,
		 service->port, service->host ? " of host " : "",
		 service->host ? service->host : "");
}

void check_each_service(struct checking *checking, check_service_rule *rule)
{
	char place[CHECK_PLACE];

	for (size_t i = 0; i < checking->run->service_count; i++) {
		check_place_of(&checking->run->services[i], place);
		rule(checking, &checking->run->services[i], place);
	}
}
