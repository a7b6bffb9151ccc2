/* SPDX-License-Identifier: MIT */
/* Which responses count as good, by status and by contents of the body. */
#ifndef DRIVER_PAYLOAD_EXPECTATION_H
#define DRIVER_PAYLOAD_EXPECTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The judgement on a complete response. */
enum verdict {
	VERDICT_BY_STATUS, /* not judged by the engine: 400 and above fail */
	VERDICT_GOOD,
	VERDICT_BAD_STATUS,
	VERDICT_UNEXPECTED, /* against the user's expectation */
};

/* Zeroed, nothing is expected, and statuses of 400 and above fail. */
struct expectation {
	uint16_t *statuses;
	size_t status_count;
	bool inherited; /* defaults, which the next statuses replace */
	bool body_inherited;
	const char *body; /* text that the body contains; NULL: any */
	size_t body_length;
	size_t *fallback; /* by length matched: the next shorter match (Knuth, Morris, Pratt) */
};

#define GRPC_ANY UINT32_MAX

/* The good gRPC statuses, as bits, and the messages that come with OK; zeroed: OK alone, and one message. */
struct grpc_expectation {
	uint32_t statuses;
	bool given;
	bool replies_given;
	uint32_t replies; /* GRPC_ANY: any number */
};

/* The search in one response's body. Zeroed, nothing was seen. */
struct expectation_search {
	size_t matched; /* bytes of the text that the end of the seen body matches */
	bool found;
};

/*
 * Parse "200,204", or the text, which must stay. -EINVAL with @ret_error, or -ENOMEM. Statuses
 * accumulate, except onto inherited ones; a text is given once.
 */
int expectation_parse_status(struct expectation *expectation, const char *value, char **ret_error);
int expectation_parse_body(struct expectation *expectation, const char *value, char **ret_error);
void expectation_clear(struct expectation *expectation);

/* Search the next bytes of the body, of any length. */
void expectation_feed(const struct expectation *expectation, struct expectation_search *search,
		      const char *data, size_t length);

/* Append why a response is bad to @text, or nothing if it is good. */
void expectation_tell(const struct expectation *expectation,
		      const struct expectation_search *search, uint16_t status, char *text,
		      size_t size);

/* Write the given statuses, "200,302", to @ret_text; NULL: none. -ENOMEM. */
int expectation_statuses(const struct expectation *expectation, char **ret_text);

/* Judge a complete response. */
enum verdict expectation_judge(const struct expectation *expectation,
			       const struct expectation_search *search, uint16_t status);

#endif
