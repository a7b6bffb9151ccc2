/* SPDX-License-Identifier: MIT */
/* The table of fields. Private to template*.c. */
#ifndef DRIVER_PAYLOAD_TEMPLATE_FIELD_H
#define DRIVER_PAYLOAD_TEMPLATE_FIELD_H

#include "template.h"

struct template_field;

struct template_part {
	const struct template_field *field; /* NULL: the constant bytes below */
	const char *bytes;
	size_t length;
	uint64_t a, b; /* parameters of the field */
	const struct template_rows *rows;
	const struct template_variables *variables; /* during parsing */
	bool encoded;				    /* percent-encode the value */
	bool line;				    /* in a header: no control characters */
};

struct template_field {
	const char *name;
	bool unique;
	bool binary; /* may give any byte */
	/* Fill a, b and rows. @text: after the colon; NULL: no colon. -EINVAL if it is wrong. */
	int (*parse)(const char *text, struct template_part *part);
	size_t size; /* most bytes; 0: by max() */
	size_t (*max)(const struct template_part *part);
	size_t (*render)(const struct template_part *part, const struct template_turn *turn,
			 char *buffer);
};

/* Return NULL without a field of this name. */
const struct template_field *template_field_find(const char *name, size_t length);

#endif
