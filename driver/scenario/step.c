// SPDX-License-Identifier: MIT
/* The keys of a step. Neighbour: keys.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/http/request.h"
#include "reader.h"
#include "sojourn/array.h"
#include "sojourn/units.h"

int scenario_check_name(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
			const char *name)
{
	bool printable = true;

	for (const char *c = name; *c; c++)
		printable &= *c >= ' ' && *c <= '~';
	if (*name && strlen(name) <= SCENARIO_NAME_MAX && printable)
		return 0;
	return scenario_refuse(reader, node,
			       "%s: '%s' is not a name; 1 to %u printable ASCII characters are "
			       "allowed",
			       what, name, SCENARIO_NAME_MAX);
}

static int apply_name(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		      void *object)
{
	const struct scenario *scenario = reader->scenario;
	struct scenario_step *step = object;
	int err = scenario_text(reader, value, "name", &step->name);

	(void)key;
	if (!err)
		err = scenario_check_name(reader, value, "name", step->name);
	if (err)
		return err;
	for (size_t i = 0; i + 1 < scenario->step_count; i++)
		if (!strcmp(scenario->steps[i].name, step->name))
			return scenario_refuse(reader, value,
					       "name: '%s' is the step in line %zu, too; each name "
					       "is allowed once",
					       step->name, scenario->steps[i].place.line);
	return 0;
}

static int apply_target(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			void *object)
{
	struct scenario_step *step = object;

	scenario_places_add(&step->places, key);
	return scenario_text(reader, value, "target", &step->url);
}

static int apply_path(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		      void *object)
{
	struct scenario_step *step = object;
	int err = scenario_text(reader, value, "path", &step->path);

	scenario_places_add(&step->places, key);
	if (err)
		return err;
	for (const char *c = step->path; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return scenario_refuse(reader, value,
					       "path: '%s' contains a blank or control character; "
					       "write it percent-encoded",
					       step->path);
	if (*step->path != '/')
		return scenario_refuse(reader, value, "path: '%s' does not begin with /",
				       step->path);
	return 0;
}

static const struct cli_option own_rows[] = {
	{"weight", 0, "N", "", CLI_NUMBER, CLI_AT(struct scenario_step, weight), .minimum = 1,
	 .maximum = SCENARIO_WEIGHT_MAX},
	{"think", 0, "TIME", "", CLI_DURATION, CLI_AT(struct scenario_step, think_ns)},
};
static const struct cli_table own_table = {"", own_rows, ARRAY_SIZE(own_rows), 0};
static const struct cli_table *const own_tables[] = {&own_table};
static const struct scenario_options own_options = {own_tables, 1};

static int apply_number(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			void *object)
{
	struct scenario_step *step = object;

	scenario_places_add(&step->places, key);
	return scenario_option_apply(reader, &own_options, key, value, step);
}

static void drop_header(struct request *request, const char *name)
{
	size_t length = strlen(name), kept = 0;

	for (size_t i = 0; i < request->header_count; i++)
		if (strncasecmp(request->headers[i], name, length) ||
		    request->headers[i][length] != ':')
			request->headers[kept++] = request->headers[i];
	request->header_count = kept;
}

static int add_header(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		      void *object)
{
	struct scenario_step *step = object;
	struct request *request = &step->request;
	const char *name = (const char *)key->data.scalar.value, *text;
	autofree char *error = NULL;
	const char **added;
	char *line;
	int err = scenario_text(reader, value, name, &text);

	if (err)
		return err;
	if (asprintf(&line, "%s: %s", name, text) < 0)
		return -ENOMEM;
	err = scenario_keep(reader->scenario, line);
	if (err)
		return err;
	err = http_request_check_header(line, &error);
	if (err == -EINVAL && error)
		return scenario_refuse(reader, key, "%s", error + 2);
	drop_header(request, name);
	added = ARRAY_APPEND(request->headers, request->header_count);
	if (!added)
		return -ENOMEM;
	*added = line;
	return 0;
}

static int apply_headers(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			 void *object)
{
	struct scenario_step *step = object;

	scenario_places_add(&step->places, key);
	return scenario_each_pair(reader, value, "headers", SCENARIO_HEADERS_MAX, add_header,
				  object);
}

#define VARIABLE_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static int find_variable(struct scenario_reader *reader, const yaml_node_t *node,
			 uint32_t *ret_variable)
{
	struct scenario *scenario = reader->scenario;
	const char *name;
	uint32_t i = 0;
	int err = scenario_text(reader, node, "a variable", &name);

	if (err)
		return err;
	if (!*name || strlen(name) > SCENARIO_NAME_MAX || name[strspn(name, VARIABLE_CHARACTERS)])
		return scenario_refuse(reader, node,
				       "'%s' is not a variable's name; 1 to %u letters, digits, _ "
				       "and - are allowed",
				       name, SCENARIO_NAME_MAX);
	while (i < scenario->variable_count && strcmp(scenario->variables[i].name, name) != 0)
		i++;
	if (i == SCENARIO_VARIABLES_MAX)
		return scenario_refuse(reader, node,
				       "'%s' is one variable too many; at most %u are allowed",
				       name, SCENARIO_VARIABLES_MAX);
	if (i == scenario->variable_count)
		scenario->variables[scenario->variable_count++] =
			(struct template_variable){.name = name};
	*ret_variable = i;
	return 0;
}

static int add_set(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		   void *object)
{
	struct scenario_step *step = object;
	struct scenario_set set = {0}, *added;
	int err = find_variable(reader, key, &set.variable);

	if (!err)
		err = scenario_text(reader, value, "set", &set.text);
	if (err)
		return err;
	scenario_place_of(value, "set", &set.place);
	added = ARRAY_APPEND(step->sets, step->set_count);
	if (!added)
		return -ENOMEM;
	*added = set;
	return 0;
}

static int apply_set(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *object)
{
	(void)key;
	return scenario_each_pair(reader, value, "set", SCENARIO_VARIABLES_MAX, add_set, object);
}

/* A capture in the file: its source and maximum length. */
struct written_capture {
	yaml_node_t *kind;
	const char *text;
	uint64_t max;
};

static int apply_capture_kind(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			      void *object)
{
	struct written_capture *written = object;

	if (written->kind)
		return scenario_refuse(reader, key, "capture: '%s' follows '%s'; one is allowed",
				       (const char *)key->data.scalar.value,
				       (const char *)written->kind->data.scalar.value);
	written->kind = key;
	return scenario_text(reader, value, (const char *)key->data.scalar.value, &written->text);
}

static int apply_capture_max(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			     void *object)
{
	struct written_capture *written = object;
	const char *text;
	int err = scenario_text(reader, value, "max", &text);

	(void)key;
	if (!err && units_parse_u64(text, 1, CAPTURE_SIZE_MAX, &written->max))
		return scenario_refuse(reader, value,
				       "max: '%s' is not a number of bytes from 1 to %u", text,
				       CAPTURE_SIZE_MAX);
	return err;
}

static const struct scenario_key capture_keys[] = {
	{"header", "name", apply_capture_kind},	     {"json", "pointer", apply_capture_kind},
	{"regex", "expression", apply_capture_kind}, {"bytes", "OFFSET+LENGTH", apply_capture_kind},
	{"max", "bytes", apply_capture_max},
};

const struct scenario_mapping scenario_capture_mapping = {
	.what = "a capture",
	.keys = capture_keys,
	.count = ARRAY_SIZE(capture_keys),
};

static int add_capture(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		       void *object)
{
	struct written_capture written = {.max = CAPTURE_SIZE};
	struct template_variable *variable;
	struct scenario_step *step = object;
	autofree char *error = NULL;
	uint32_t index = 0;
	int err = find_variable(reader, key, &index);

	if (!err)
		err = scenario_read_mapping(reader, value, &scenario_capture_mapping, &written);
	if (err)
		return err;
	if (!written.kind)
		return scenario_refuse(reader, value,
				       "capture: it is not said from what; one of %s is needed",
				       capture_forms);
	variable = &reader->scenario->variables[index];
	if (written.max > variable->max)
		variable->max = written.max;
	err = capture_add(&step->captures, (const char *)written.kind->data.scalar.value,
			  written.text, index, &error);
	if (err == -EINVAL && error)
		return scenario_refuse(reader, written.kind, "%s: %s",
				       (const char *)written.kind->data.scalar.value, error);
	return err;
}

static int apply_capture(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			 void *object)
{
	struct scenario_step *step = object;

	scenario_places_add(&step->places, key);
	return scenario_each_pair(reader, value, "capture", CAPTURES_MAX, add_capture, object);
}

static int apply_request_option(struct scenario_reader *reader, yaml_node_t *key,
				yaml_node_t *value, void *object)
{
	struct scenario_step *step = object;

	scenario_places_add(&step->places, key);
	return scenario_option_apply(reader, &scenario_request_options, key, value, &step->request);
}

static const struct scenario_key step_keys[] = {
	{"name", "text", apply_name},	 {"target", "URL", apply_target},
	{"path", "text", apply_path},	 {"headers", "mapping", apply_headers},
	{"set", "mapping", apply_set},	 {"capture", "mapping", apply_capture},
	{"think", "time", apply_number}, {"weight", "number", apply_number},
};

const struct scenario_mapping scenario_step_mapping = {
	.what = "a step",
	.keys = step_keys,
	.count = ARRAY_SIZE(step_keys),
	.options = &scenario_request_options,
	.apply = apply_request_option,
};

static const struct scenario_key defaults_keys[] = {
	{"headers", "mapping", apply_headers},
	{"think", "time", apply_number},
};

const struct scenario_mapping scenario_defaults_mapping = {
	.what = "defaults",
	.keys = defaults_keys,
	.count = ARRAY_SIZE(defaults_keys),
	.options = &scenario_request_options,
	.apply = apply_request_option,
};
