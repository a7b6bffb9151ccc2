/* SPDX-License-Identifier: MIT */
/* Which responses count as good, where the user says so: by status, by what the body contains. */
#ifndef DRIVER_PAYLOAD_EXPECTATION_H
#define DRIVER_PAYLOAD_EXPECTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a complete response is worth. */
enum verdict {
	VERDICT_BY_STATUS, /* 400 and above is a failure: where the engine does not judge */
	VERDICT_GOOD,
	VERDICT_BAD_STATUS,
	VERDICT_UNEXPECTED, /* not what the user said to expect */
};

/* Zeroed: nothing is expected, and a status of 400 or above is a failure. */
struct expectation {
	uint16_t *statuses;
	size_t status_count;
	bool inherited; /* they are defaults: the next ones take their place */
	bool body_inherited;
	const char *body; /* NULL: any */
	size_t body_length;
	size_t *fallback; /* of each length matched: the next shorter one (Knuth, Morris, Pratt) */
};

/* Which statuses of gRPC are good, as bits; zeroed: OK alone. */
struct grpc_expectation {
	uint32_t statuses;
	bool given;
};

/* One response's body so far. Zeroed, none of it was seen. */
struct expectation_search {
	size_t matched; /* bytes of the text that the last bytes seen are the begin of */
	bool found;
};

/*
 * From "200,204" and from the text (which must stay). -EINVAL with a sentence in @ret_error (freed by
 * the caller), or -ENOMEM. Statuses add up but for those that are inherited; of texts there is one.
 */
int expectation_parse_status(struct expectation *expectation, const char *value, char **ret_error);
int expectation_parse_body(struct expectation *expectation, const char *value, char **ret_error);
void expectation_clear(struct expectation *expectation);

/* The next bytes of the body, as many and as few as come. */
void expectation_feed(const struct expectation *expectation, struct expectation_search *search,
		      const char *data, size_t length);

/* Appends why such a response is not good to @text; nothing if it is. */
void expectation_tell(const struct expectation *expectation,
		      const struct expectation_search *search, uint16_t status, char *text,
		      size_t size);

/* The statuses that were given, "200,302"; NULL in @ret_text: none were. -ENOMEM. */
int expectation_statuses(const struct expectation *expectation, char **ret_text);

/* Of a complete response. */
enum verdict expectation_judge(const struct expectation *expectation,
			       const struct expectation_search *search, uint16_t status);

#endif
