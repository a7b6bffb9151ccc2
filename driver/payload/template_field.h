/* SPDX-License-Identifier: MIT */
/* The table of fields. Private to template*.c. */
#ifndef DRIVER_PAYLOAD_TEMPLATE_FIELD_H
#define DRIVER_PAYLOAD_TEMPLATE_FIELD_H

#include "template.h"

struct template_field;

struct template_part {
	const struct template_field *field; /* NULL: the bytes below */
	const char *bytes;
	size_t length;
	uint64_t a, b; /* the field's own */
	const struct template_rows *rows;
	const struct template_variables *variables; /* while it is being parsed */
	bool encoded;				    /* percent-encode what the field gives */
	bool line; /* it stands in a header: no control characters */
};

struct template_field {
	const char *name;
	bool unique;
	bool binary; /* gives any bytes */
	/* Fills a, b and rows. @text: behind the colon, NULL: there is none. -EINVAL if it is wrong. */
	int (*parse)(const char *text, struct template_part *part);
	size_t (*max)(const struct template_part *part);
	size_t (*render)(const struct template_part *part, const struct template_turn *turn,
			 char *buffer);
};

/* NULL if there is none of this name. */
const struct template_field *template_field_find(const char *name, size_t length);

#endif
