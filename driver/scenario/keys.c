// SPDX-License-Identifier: MIT
/* The keys of a scenario; those of its steps are in step.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "sojourn/refuse.h"

const char *const scenario_order_names[2] = {"cycle", "mix"};
static const char *const failure_names[] = {"restart", "next"};

static int apply_name(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		      void *object)
{
	struct scenario *scenario = object;
	int err = scenario_text(reader, value, "name", &scenario->name);

	(void)key;
	return err ? err : scenario_check_name(reader, value, "name", scenario->name);
}

static int apply_target(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			void *object)
{
	struct scenario *scenario = object;

	scenario_places_add(&scenario->places, key);
	return scenario_text(reader, value, "target", &scenario->url);
}

static int apply_load(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		      void *object)
{
	(void)key;
	return scenario_read_mapping(reader, value, &scenario_load_mapping, object);
}

static const struct cli_option choice_rows[] = {
	{"order", 0, "WORD", "", CLI_WORD, CLI_AT(struct scenario, order),
	 .words = scenario_order_names, .maximum = 2,
	 .allowed = "is not known; allowed: cycle, mix"},
	{"on-failure", 0, "WORD", "", CLI_WORD, CLI_AT(struct scenario, on_failure),
	 .words = failure_names, .maximum = 2, .allowed = "is not known; allowed: restart, next"},
};
static const struct cli_table choice_table = {"", choice_rows, ARRAY_SIZE(choice_rows), 0};
static const struct cli_table *const own_tables[] = {&choice_table, &option_output};
static const struct scenario_options own_options = {own_tables, ARRAY_SIZE(own_tables)};

static int apply_choice(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			void *object)
{
	struct scenario *scenario = object;

	scenario_places_add(&scenario->places, key);
	return scenario_option_apply(reader, &own_options, key, value, scenario);
}

static int apply_assert(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			void *object)
{
	int err = 0;

	(void)object;
	if (value->type != YAML_SEQUENCE_NODE)
		return scenario_option_apply(reader, &own_options, key, value, reader->options);
	for (const yaml_node_item_t *item = value->data.sequence.items.start;
	     item < value->data.sequence.items.top && !err; item++)
		err = scenario_option_apply(reader, &own_options, key, scenario_node(reader, *item),
					    reader->options);
	return err;
}

/* Report errors in the defaults once, here; each step applies them again. */
static int apply_defaults(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			  void *object)
{
	struct scenario_step scratch = {0};
	int err = scenario_read_mapping(reader, value, &scenario_defaults_mapping, &scratch);

	(void)key;
	(void)object;
	request_clear(&scratch.request);
	return err;
}

static yaml_node_t *find_defaults(struct scenario_reader *reader)
{
	const yaml_node_t *root = yaml_document_get_root_node(&reader->document);

	for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
	     pair < root->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = scenario_node(reader, pair->key);

		if (key->type == YAML_SCALAR_NODE &&
		    !strcmp((const char *)key->data.scalar.value, "defaults"))
			return scenario_node(reader, pair->value);
	}
	return NULL;
}

static int add_step(struct scenario_reader *reader, yaml_node_t *node, yaml_node_t *defaults)
{
	struct scenario *scenario = reader->scenario;
	struct scenario_step *step = &scenario->steps[scenario->step_count];
	int err = 0;

	scenario_place_of(node, "", &step->place);
	scenario->step_count++; /* freed with the others from here on */
	if (defaults)
		err = scenario_read_mapping(reader, defaults, &scenario_defaults_mapping, step);
	/* The step may repeat keys of the defaults. */
	options_inherit_request(&step->request);
	if (!err)
		err = scenario_read_mapping(reader, node, &scenario_step_mapping, step);
	if (!err && !step->name)
		err = scenario_refuse(reader, node, "the step has no 'name'; each needs one");

	return err;
}

static int apply_steps(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
		       void *object)
{
	struct scenario *scenario = object;
	yaml_node_t *defaults = find_defaults(reader);
	const yaml_node_item_t *items = value->data.sequence.items.start;
	size_t count = (size_t)(value->data.sequence.items.top - items);
	int err = 0;

	(void)key;
	if (value->type != YAML_SEQUENCE_NODE || !count || count > SCENARIO_STEPS_MAX)
		return scenario_refuse(reader, value,
				       "steps: a list of 1 to %u steps is needed, each begun with "
				       "'- name: …'",
				       SCENARIO_STEPS_MAX);
	scenario->steps = calloc(count, sizeof(*scenario->steps));
	if (!scenario->steps)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = add_step(reader, scenario_node(reader, items[i]), defaults);
	return err;
}

static int apply_run_option(struct scenario_reader *reader, yaml_node_t *key, yaml_node_t *value,
			    void *object)
{
	struct scenario *scenario = object;

	scenario_places_add(&scenario->places, key);
	return scenario_option_apply(reader, &scenario_run_options, key, value, reader->options);
}

const struct scenario_mapping scenario_load_mapping = {
	.what = "load",
	.options = &scenario_run_options,
	.apply = apply_run_option,
};

static const struct scenario_key top_keys[] = {
	{"name", "text", apply_name},
	{"target", "URL", apply_target},
	{"load", "mapping", apply_load},
	{"assert", "condition or list", apply_assert},
	{"order", "cycle, mix", apply_choice},
	{"on-failure", "restart, next", apply_choice},
	{"defaults", "mapping", apply_defaults},
	{"steps", "list", apply_steps},
};

const struct scenario_mapping scenario_top = {
	.what = "a scenario",
	.keys = top_keys,
	.count = ARRAY_SIZE(top_keys),
};

static int read_document(struct scenario_reader *reader)
{
	yaml_node_t *root = yaml_document_get_root_node(&reader->document);

	if (!root)
		return refuse(reader->ret_error,
			      "%s:1:1: the file is empty; a scenario has at least 'target' and "
			      "'steps'",
			      reader->path);
	return scenario_read_mapping(reader, root, &scenario_top, reader->scenario);
}

static int parse(struct scenario_reader *reader, const char *text, size_t length,
		 struct scenario **ret_scenario)
{
	struct scenario *scenario = calloc(1, sizeof(*scenario));
	int err;

	if (!scenario)
		return -ENOMEM;
	scenario->path = reader->path;
	reader->scenario = scenario;
	err = scenario_read_text(reader, text, length);
	if (!err) {
		err = read_document(reader);
		yaml_document_delete(&reader->document);
	}
	if (!err && !scenario->step_count)
		err = refuse(reader->ret_error,
			     "%s:1:1: 'steps' is missing; a scenario has at least one step",
			     reader->path);
	if (err) {
		scenario_free(scenario);
		return err;
	}
	*ret_scenario = scenario;
	return 0;
}

int scenario_parse(const char *path, const char *text, size_t length, struct options *options,
		   struct scenario **ret_scenario, char **ret_error)
{
	struct scenario_reader reader = {.path = path, .options = options, .ret_error = ret_error};

	return parse(&reader, text, length, ret_scenario);
}

int scenario_load(const char *path, const struct scenario_sent *sent, struct options *options,
		  struct scenario **ret_scenario, char **ret_error)
{
	struct scenario_reader reader = {
		.path = path, .sent = sent, .options = options, .ret_error = ret_error};
	const char *where = scenario_where(sent, path);
	autofree char *text = NULL, *error = NULL;
	size_t length;
	int err;

	if (!where)
		return refuse(ret_error, "run: '%s' was not sent", path);
	err = option_read_file("run", where, SCENARIO_FILE_MAX, &text, &length, &error);
	if (err == -EINVAL && error)
		return refuse(ret_error, "%s", error + 2);
	return err ? err : parse(&reader, text, length, ret_scenario);
}
