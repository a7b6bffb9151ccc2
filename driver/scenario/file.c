// SPDX-License-Identifier: MIT
/*
 * Reads scenario files with libyaml: YAML with line numbers and aliases. The depth of the tables
 * and the sizes in scenario.h limit what is read, however often an alias repeats it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "sojourn/array.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

#define DEPTH_MAX   16 /* the tables reach 5 */
#define ANCHORS_MAX 256U

int scenario_refuse(struct scenario_reader *reader, const yaml_node_t *node, const char *format,
		    ...)
{
	autofree char *text = NULL;
	va_list args;

	va_start(args, format);
	text = text_format_args(format, args);
	va_end(args);
	if (!text)
		return -ENOMEM;
	return refuse(reader->ret_error, "%s:%zu:%zu: %s", reader->path, node->start_mark.line + 1,
		      node->start_mark.column + 1, text);
}

yaml_node_t *scenario_node(struct scenario_reader *reader, int index)
{
	return yaml_document_get_node(&reader->document, index);
}

void scenario_place_of(const yaml_node_t *node, const char *name, struct scenario_place *ret_place)
{
	ret_place->line = node->start_mark.line + 1;
	ret_place->column = node->start_mark.column + 1;
	snprintf(ret_place->name, sizeof(ret_place->name), "%s", name);
}

void scenario_places_add(struct scenario_places *places, const yaml_node_t *key)
{
	if (places->count < SCENARIO_PLACES_MAX)
		scenario_place_of(key, (const char *)key->data.scalar.value,
				  &places->list[places->count++]);
}

int scenario_keep(struct scenario *scenario, char *text)
{
	char **added = text ? ARRAY_APPEND(scenario->texts, scenario->text_count) : NULL;

	if (!added) {
		free(text);
		return -ENOMEM;
	}
	*added = text;
	return 0;
}

static const char *const node_kinds[] = {"nothing", "a value", "a list", "a mapping"};

int scenario_text(struct scenario_reader *reader, const yaml_node_t *node, const char *what,
		  const char **ret_text)
{
	struct scenario *scenario = reader->scenario;
	size_t length;
	int err;

	if (node->type != YAML_SCALAR_NODE)
		return scenario_refuse(reader, node, "%s: %s is here; one value is allowed", what,
				       node_kinds[node->type]);
	length = node->data.scalar.length;
	if (memchr(node->data.scalar.value, '\0', length))
		return scenario_refuse(reader, node,
				       "%s: the value contains a NUL; write it as '\\0' in single "
				       "quotes where bytes are allowed",
				       what);
	scenario->text_bytes += length + 1;
	if (scenario->text_bytes > SCENARIO_TEXT_MAX)
		return scenario_refuse(reader, node,
				       "%s: the file's values exceed %zu MiB, aliases replaced",
				       what, SCENARIO_TEXT_MAX >> 20);
	err = scenario_keep(scenario, strdup((const char *)node->data.scalar.value));
	if (!err)
		*ret_text = scenario->texts[scenario->text_count - 1];
	return err;
}

static const struct scenario_key *find_key(const struct scenario_mapping *mapping, const char *name)
{
	for (size_t i = 0; i < mapping->count; i++)
		if (!strcmp(mapping->keys[i].name, name))
			return &mapping->keys[i];
	return NULL;
}

/* Headers have a better key of their own; hidden options are no keys. */
static bool is_key(const struct cli_option *row)
{
	return row->help && strcmp(row->name, "header") != 0;
}

const struct cli_option *scenario_option_find(const struct scenario_options *which,
					      const char *name)
{
	for (size_t i = 0; i < which->count; i++)
		for (size_t j = 0; j < which->tables[i]->count; j++) {
			const struct cli_option *row = &which->tables[i]->rows[j];

			if (is_key(row) && !strcmp(row->name, name))
				return row;
		}
	return NULL;
}

static void list_options(const struct scenario_options *which, FILE *file)
{
	for (size_t i = 0; i < which->count; i++)
		for (size_t j = 0; j < which->tables[i]->count; j++) {
			const struct cli_option *row = &which->tables[i]->rows[j];

			if (is_key(row))
				fprintf(file, "%s%s", ftell(file) ? ", " : "", row->name);
		}
}

static int refuse_key(struct scenario_reader *reader, const yaml_node_t *key,
		      const struct scenario_mapping *mapping)
{
	autofree char *allowed = NULL;
	size_t size;
	FILE *file = open_memstream(&allowed, &size);

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < mapping->count; i++)
		fprintf(file, "%s%s", i ? ", " : "", mapping->keys[i].name);
	if (mapping->options)
		list_options(mapping->options, file);
	if (fclose(file))
		return -ENOMEM;
	return scenario_refuse(reader, key, "'%s' is not a key of %s; allowed: %s",
			       (const char *)key->data.scalar.value, mapping->what, allowed);
}

struct walk {
	const struct scenario_mapping *mapping;
	void *object;
};

static int apply_key(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		     void *user)
{
	const struct walk *walk = user;
	const char *name = (const char *)key->data.scalar.value;
	const struct scenario_key *row = find_key(walk->mapping, name);

	if (row)
		return row->apply(reader, key, value, walk->object);
	if (walk->mapping->options && scenario_option_find(walk->mapping->options, name))
		return walk->mapping->apply(reader, key, value, walk->object);
	return refuse_key(reader, key, walk->mapping);
}

/* A key is a scalar without a NUL, given once. */
static int check_key(struct scenario_reader *reader, const yaml_node_t *mapping,
		     const yaml_node_pair_t *pair, const char *what)
{
	const yaml_node_t *key = scenario_node(reader, pair->key);

	if (key->type != YAML_SCALAR_NODE ||
	    memchr(key->data.scalar.value, '\0', key->data.scalar.length))
		return scenario_refuse(reader, key, "%s: a key is a plain word", what);
	for (const yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < pair; p++) {
		const yaml_node_t *other = scenario_node(reader, p->key);

		if (key->data.scalar.length == other->data.scalar.length &&
		    !memcmp(key->data.scalar.value, other->data.scalar.value,
			    key->data.scalar.length))
			return scenario_refuse(reader, key,
					       "'%s' is given twice, first in line %zu; once is "
					       "allowed",
					       (const char *)key->data.scalar.value,
					       other->start_mark.line + 1);
	}
	return 0;
}

int scenario_each_pair(struct scenario_reader *reader, yaml_node_t *node, const char *what,
		       size_t max,
		       int (*apply)(struct scenario_reader *reader, yaml_node_t *key,
				    yaml_node_t *value, void *object),
		       void *object)
{
	const yaml_node_pair_t *pair, *end;
	int err = 0;

	if (node->type != YAML_MAPPING_NODE)
		return scenario_refuse(reader, node,
				       "%s: %s is here; a mapping is needed, like 'key: value'",
				       what, node_kinds[node->type]);
	pair = node->data.mapping.pairs.start;
	end = node->data.mapping.pairs.top;
	if ((size_t)(end - pair) > max)
		return scenario_refuse(reader, node, "%s: %zu keys; at most %zu are allowed", what,
				       (size_t)(end - pair), max);
	for (; pair < end && !err; pair++) {
		err = check_key(reader, node, pair, what);
		if (!err)
			err = apply(reader, scenario_node(reader, pair->key),
				    scenario_node(reader, pair->value), object);
	}
	return err;
}

int scenario_read_mapping(struct scenario_reader *reader, yaml_node_t *node,
			  const struct scenario_mapping *mapping, void *object)
{
	struct walk walk = {mapping, object};

	return scenario_each_pair(reader, node, mapping->what, SCENARIO_PLACES_MAX, apply_key,
				  &walk);
}

/* Report libyaml's error with its place. A byte that is not UTF-8 has only an offset. */
static int refuse_syntax(const yaml_parser_t *parser, const char *path, char **ret_error)
{
	const char *problem = parser->problem ? parser->problem : "it cannot be read";

	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->error == YAML_READER_ERROR)
		return refuse(ret_error, "%s: byte %zu: not YAML: %s; UTF-8 text is allowed", path,
			      parser->problem_offset, problem);
	return refuse(ret_error, "%s:%zu:%zu: not YAML: %s%s%s", path,
		      parser->problem_mark.line + 1, parser->problem_mark.column + 1, problem,
		      parser->context ? ", " : "", parser->context ? parser->context : "");
}

/* Return how an event changes the depth. */
static int depth_of(yaml_event_type_t type)
{
	if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
		return 1;
	return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

static bool has_anchor(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return event->data.mapping_start.anchor;
	default:
		return false;
	}
}

/* The state of check_events(). */
struct seen {
	unsigned int documents, anchors;
	int depth;
};

static int check_event(const yaml_event_t *event, struct seen *seen, const char *path,
		       char **ret_error)
{
	seen->depth += depth_of(event->type);
	seen->documents += event->type == YAML_DOCUMENT_START_EVENT;
	seen->anchors += has_anchor(event);
	if (seen->depth > DEPTH_MAX)
		return refuse(ret_error, "%s:%zu:%zu: nested too deeply; %d levels are allowed",
			      path, event->start_mark.line + 1, event->start_mark.column + 1,
			      DEPTH_MAX);
	if (seen->anchors > ANCHORS_MAX)
		return refuse(ret_error, "%s:%zu:%zu: one anchor too many; %u are allowed", path,
			      event->start_mark.line + 1, event->start_mark.column + 1,
			      ANCHORS_MAX);
	if (seen->documents > 1)
		return refuse(ret_error,
			      "%s:%zu:%zu: a second document begins here; one scenario is allowed",
			      path, event->start_mark.line + 1, event->start_mark.column + 1);
	return 0;
}

/*
 * Check syntax, depth and anchors before building a document: libyaml's time grows with the square
 * of the depth, and with anchors times aliases.
 */
static int check_events(const char *path, const char *text, size_t length, char **ret_error)
{
	struct seen seen = {0};
	yaml_parser_t parser;
	yaml_event_t event;
	int err = 0;
	bool over = false;

	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	while (!err && !over) {
		if (!yaml_parser_parse(&parser, &event)) {
			err = refuse_syntax(&parser, path, ret_error);
			break;
		}
		err = check_event(&event, &seen, path, ret_error);
		over = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return err;
}

int scenario_read_text(struct scenario_reader *reader, const char *text, size_t length)
{
	yaml_parser_t parser;
	int err = check_events(reader->path, text, length, reader->ret_error);

	if (err)
		return err;
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	if (!yaml_parser_load(&parser, &reader->document))
		err = refuse_syntax(&parser, reader->path, reader->ret_error);
	yaml_parser_delete(&parser);
	return err;
}

const char *scenario_where(const struct scenario_sent *sent, const char *path)
{
	if (!sent)
		return path;
	for (size_t i = 0; i < sent->count; i++)
		if (!strcmp(sent->list[i].path, path))
			return sent->list[i].own;
	return NULL;
}

void scenario_free(struct scenario *scenario)
{
	if (!scenario)
		return;
	for (size_t i = 0; i < scenario->step_count; i++) {
		struct scenario_step *step = &scenario->steps[i];

		if (!scenario->of_targets)
			request_clear(&step->request);
		capture_clear(&step->captures);
		target_clear(&step->target);
		free(step->sets);
	}
	for (size_t i = 0; i < scenario->text_count; i++)
		free(scenario->texts[i]);
	free(scenario->texts);
	free(scenario->files);
	free(scenario->steps);
	free(scenario);
}
