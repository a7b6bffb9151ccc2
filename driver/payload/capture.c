// SPDX-License-Identifier: MIT
/* Captures values from responses, with jansson for JSON and the C library for patterns. */
#include "capture.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "detail.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define BODY_SIZE_MIN	4096U
#define JSON_NUMBER_MAX 32U

struct capture_kind {
	const char *name;
	bool from_headers;
	int (*parse)(struct capture *capture, const char *text, char **ret_error);
	/* Take from the body; false: missing, or too long. NULL: from headers. */
	bool (*take)(const struct capture *capture, struct capture_store *store);
	/* Describe what was missing, unless it was too long. */
	void (*tell)(const struct capture *capture, const struct capture_store *store, char *text,
		     size_t size);
};

const char capture_forms[] = "header, json, regex or bytes";

static int parse_header(struct capture *capture, const char *text, char **ret_error)
{
	if (!*text || text[strcspn(text, " \t:\r\n")])
		return refuse(ret_error, "'%s' is not the name of a header", text);
	capture->text = text;
	return 0;
}

/* RFC 6901: empty, or names after '/', where ~0 and ~1 stand for ~ and /. */
static int parse_json(struct capture *capture, const char *text, char **ret_error)
{
	for (const char *tilde = text; (tilde = strchr(tilde, '~')); tilde++)
		if (tilde[1] != '0' && tilde[1] != '1')
			return refuse(ret_error,
				      "'%s': a ~ in a JSON pointer is followed by 0 or 1", text);
	if (*text && *text != '/')
		return refuse(ret_error,
			      "'%s' is not a JSON pointer; write it like /items/0/id (RFC 6901)",
			      text);
	capture->text = text;
	return 0;
}

static int parse_regex(struct capture *capture, const char *text, char **ret_error)
{
	int code = regcomp(&capture->regex, text, REG_EXTENDED);
	char reason[128];

	if (!code) {
		capture->text = text;
		return 0;
	}
	regerror(code, &capture->regex, reason, sizeof(reason));
	return refuse(ret_error, "'%s' is not a POSIX extended regular expression: %s", text,
		      reason);
}

static int parse_bytes(struct capture *capture, const char *text, char **ret_error)
{
	const char *plus = strchr(text, '+');
	uint64_t offset = 0, length = 0;
	char first[24];

	if (plus && (size_t)(plus - text) < sizeof(first)) {
		memcpy(first, text, (size_t)(plus - text));
		first[plus - text] = '\0';
		if (units_parse_u64(first, 0, CAPTURE_REACH_MAX, &offset) ||
		    units_parse_u64(plus + 1, 1, CAPTURE_SIZE_MAX, &length))
			length = 0;
	}
	if (!length)
		return refuse(
			ret_error,
			"'%s' is not a place; write OFFSET+LENGTH, like 4+8: from 0 on, up to "
			"%u bytes",
			text, CAPTURE_SIZE_MAX);
	capture->text = text;
	capture->offset = offset;
	capture->length = length;
	return 0;
}

static bool take_bytes(const struct capture *capture, struct capture_store *store)
{
	if (store->body_length < capture->offset + capture->length)
		return false;
	return capture_set(store, capture->variable, store->body + capture->offset,
			   capture->length);
}

/* Take the first group, or the whole match if there is none. */
static bool take_regex(const struct capture *capture, struct capture_store *store)
{
	regmatch_t match[2] = {{.rm_so = 0, .rm_eo = (regoff_t)store->body_length}};
	size_t group = capture->regex.re_nsub ? 1 : 0;

	if (!store->body || regexec(&capture->regex, store->body, 2, match, REG_STARTEND) ||
	    match[group].rm_so < 0)
		return false;
	return capture_set(store, capture->variable, store->body + match[group].rm_so,
			   (size_t)(match[group].rm_eo - match[group].rm_so));
}

/* Copy one name of a pointer, after its '/', to @name, which has the text's size. */
static const char *next_name(const char *text, char *name)
{
	for (; *text && *text != '/'; text++) {
		*name++ = *text != '~' ? *text : text[1] == '0' ? '~' : '/';
		text += *text == '~';
	}
	*name = '\0';
	return text;
}

static const json_t *json_step(const json_t *json, const char *name)
{
	uint64_t index;

	if (json_is_object(json))
		return json_object_get(json, name);
	if (!json_is_array(json) || (name[0] == '0' && name[1]) ||
	    units_parse_u64(name, 0, UINT32_MAX, &index))
		return NULL;
	return json_array_get(json, index);
}

/* Return NULL if nothing is there, or without memory. */
static const json_t *json_at(const json_t *json, const char *pointer)
{
	autofree char *name = malloc(strlen(pointer) + 1);

	if (!name)
		return NULL;
	while (json && *pointer) {
		pointer = next_name(pointer + 1, name);
		json = json_step(json, name);
	}
	return json;
}

static bool set_json(struct capture_store *store, uint32_t variable, const json_t *json)
{
	char number[JSON_NUMBER_MAX];
	int length;

	if (json_is_string(json))
		return capture_set(store, variable, json_string_value(json),
				   json_string_length(json));
	if (json_is_boolean(json))
		return capture_set(store, variable, json_is_true(json) ? "true" : "false",
				   json_is_true(json) ? 4 : 5);
	if (json_is_integer(json))
		length = snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
				  json_integer_value(json));
	else if (json_is_real(json))
		length = snprintf(number, sizeof(number), "%.17g", json_real_value(json));
	else
		return false;
	return capture_set(store, variable, number, (size_t)length);
}

static bool take_json(const struct capture *capture, struct capture_store *store)
{
	autojson json_t *document = NULL;

	if (store->body)
		document = json_loadb(store->body, store->body_length,
				      JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	return document && set_json(store, capture->variable, json_at(document, capture->text));
}

static void tell_header(const struct capture *capture, const struct capture_store *store,
			char *text, size_t size)
{
	(void)store;
	detail_add(text, size, "no header '%s' that fits", capture->text);
}

static void tell_json(const struct capture *capture, const struct capture_store *store, char *text,
		      size_t size)
{
	json_error_t error = {.position = 0};
	autojson json_t *document = NULL;

	if (store->body_length)
		document = json_loadb(store->body, store->body_length,
				      JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (!store->body_length)
		detail_add(text, size, "no body");
	else if (!document)
		detail_add(text, size, "not JSON, as its first %d bytes show", error.position);
	else if (!json_at(document, capture->text))
		detail_add(text, size, "nothing at '%s'", capture->text);
	else
		detail_add(text, size, "no text, number or truth at '%s' that fits", capture->text);
}

static void tell_regex(const struct capture *capture, const struct capture_store *store, char *text,
		       size_t size)
{
	(void)store;
	detail_add(text, size, "nothing matches '%s' and fits", capture->text);
}

static void tell_bytes(const struct capture *capture, const struct capture_store *store, char *text,
		       size_t size)
{
	detail_add(text, size, "%zu bytes, too few for %s", store->body_length, capture->text);
}

static const struct capture_kind kinds[] = {
	{"header", true, parse_header, NULL, tell_header},
	{"json", false, parse_json, take_json, tell_json},
	{"regex", false, parse_regex, take_regex, tell_regex},
	{"bytes", false, parse_bytes, take_bytes, tell_bytes},
};

int capture_add(struct capture_list *list, const char *kind, const char *text, uint32_t variable,
		char **ret_error)
{
	struct capture capture = {.variable = variable};
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, kind))
			capture.kind = &kinds[i];
	if (!capture.kind)
		return refuse(ret_error, "'%s' is not known; allowed: %s", kind, capture_forms);
	if (list->count == CAPTURES_MAX)
		return refuse(ret_error, "'%s' is one too many; at most %u are allowed", text,
			      CAPTURES_MAX);
	err = capture.kind->parse(&capture, text, ret_error);
	if (err)
		return err;
	list->headers |= capture.kind->from_headers;
	list->body |= !capture.kind->from_headers;
	list->list[list->count++] = capture;
	return 0;
}

void capture_clear(struct capture_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->list[i].kind->parse == parse_regex)
			regfree(&list->list[i].regex);
	*list = (struct capture_list){0};
}

int capture_open(struct capture_store *store, const struct template_variable *variables,
		 size_t count)
{
	size_t size = count * sizeof(*store->values);
	char *bytes;

	for (size_t i = 0; i < count; i++)
		size += variables[i].max;
	*store = (struct capture_store){.variables = variables, .variable_count = count};
	if (!count)
		return 0;
	store->values = calloc(1, size);
	if (!store->values)
		return -ENOMEM;
	bytes = (char *)(store->values + count);
	for (size_t i = 0; i < count; i++) {
		store->values[i].bytes = bytes;
		bytes += variables[i].max;
	}
	return 0;
}

void capture_close(struct capture_store *store)
{
	free(store->values);
	free(store->body);
	*store = (struct capture_store){0};
}

bool capture_set(struct capture_store *store, uint32_t variable, const char *bytes, size_t length)
{
	struct template_value *value = &store->values[variable];
	bool fits = length <= store->variables[variable].max;

	value->length = fits ? length : 0;
	if (fits && length)
		memcpy(value->bytes, bytes, length);
	return fits;
}

void capture_begin(struct capture_store *store)
{
	store->body_length = 0;
	store->found = 0;
	store->overflow = false;
}

void capture_header(const struct capture_list *list, struct capture_store *store, const char *name,
		    size_t name_length, const char *value, size_t length)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct capture *capture = &list->list[i];

		if (!capture->kind->from_headers || (store->found & 1U << i) ||
		    strlen(capture->text) != name_length ||
		    strncasecmp(capture->text, name, name_length))
			continue;
		if (capture_set(store, capture->variable, value, length))
			store->found |= 1U << i;
	}
}

static bool grow(struct capture_store *store, size_t needed)
{
	size_t size = store->body_size ? store->body_size : BODY_SIZE_MIN;
	char *grown;

	while (size < needed)
		size *= 2;
	grown = realloc(store->body, size);
	if (!grown)
		return false;
	store->body = grown;
	store->body_size = size;
	return true;
}

void capture_append(struct capture_store *store, const char *data, size_t length)
{
	size_t needed = store->body_length + length;

	if (store->overflow || !length)
		return;
	if (needed > CAPTURE_BODY_MAX || (needed >= store->body_size && !grow(store, needed + 1))) {
		store->overflow = true;
		return;
	}
	memcpy(store->body + store->body_length, data, length);
	store->body_length = needed;
	store->body[needed] = '\0'; /* for sanitizers, which do not know REG_STARTEND */
}

void capture_body(const struct capture_list *list, struct capture_store *store, const char *data,
		  size_t length)
{
	if (list->body)
		capture_append(store, data, length);
}

static bool is_found(const struct capture *capture, size_t index, struct capture_store *store)
{
	if (capture->kind->from_headers)
		return store->found & 1U << index;
	return !store->overflow && capture->kind->take(capture, store);
}

void capture_tell(const struct capture_list *list, struct capture_store *store, char *text,
		  size_t size)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct capture *capture = &list->list[i];

		if (is_found(capture, i, store))
			continue;
		detail_add(text, size, "capture %s: ", store->variables[capture->variable].name);
		if (store->overflow && !capture->kind->from_headers)
			detail_add(text, size, "the body is longer than %u bytes, or memory",
				   CAPTURE_BODY_MAX);
		else
			capture->kind->tell(capture, store, text, size);
		return;
	}
}

bool capture_end(const struct capture_list *list, struct capture_store *store)
{
	bool all = true;

	for (size_t i = 0; i < list->count; i++) {
		const struct capture *capture = &list->list[i];
		bool found = is_found(capture, i, store);

		if (!found)
			store->values[capture->variable].length = 0;
		all &= found;
	}
	return all;
}
