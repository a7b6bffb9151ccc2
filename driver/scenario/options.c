// SPDX-License-Identifier: MIT
/*
 * Command-line options as keys of a scenario, with the same rows, values and checks. File names are
 * relative to the scenario's folder.
 */
#include "reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/text.h"

static const struct cli_table *const run_tables[] = {&option_load, &option_connection};
static const struct cli_table *const request_tables[] = {&option_request, &option_stream};

const struct scenario_options scenario_run_options = {run_tables, ARRAY_SIZE(run_tables)};
const struct scenario_options scenario_request_options = {request_tables,
							  ARRAY_SIZE(request_tables)};

/* Join "a", "b" to "a,b". */
static int join(struct scenario_reader *reader, const yaml_node_t *list, const char *name,
		const char **ret_text)
{
	autofree char *joined = NULL;
	size_t size;
	FILE *file = open_memstream(&joined, &size);
	int err = file ? 0 : -ENOMEM;

	for (const yaml_node_item_t *item = list->data.sequence.items.start;
	     !err && item < list->data.sequence.items.top; item++) {
		const char *text;

		err = scenario_text(reader, scenario_node(reader, *item), name, &text);
		if (!err)
			fprintf(file, "%s%s", item > list->data.sequence.items.start ? "," : "",
				text);
	}
	if (file && fclose(file) && !err)
		err = -ENOMEM;
	if (!err)
		err = scenario_keep(reader->scenario, TAKE_PTR(joined));
	if (!err)
		*ret_text = reader->scenario->texts[reader->scenario->text_count - 1];
	return err;
}

static int note_file(struct scenario *scenario, const char *key, const char *path)
{
	struct scenario_file *file;

	for (size_t i = 0; i < scenario->file_count; i++)
		if (!strcmp(scenario->files[i].path, path))
			return 0;
	file = ARRAY_APPEND(scenario->files, scenario->file_count);
	if (!file)
		return -ENOMEM;
	*file = (struct scenario_file){.key = key, .path = path};
	return 0;
}

/* Keep the text of @format, and return it; NULL: no memory. */
__attribute__((format(printf, 2, 3))) static const char *keep_text(struct scenario *scenario,
								   const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_format_args(format, args);
	va_end(args);
	return !text || scenario_keep(scenario, text) ? NULL : text;
}

/* Replace the name of a file, relative to the scenario's folder, by where the file is. */
static int resolve(struct scenario_reader *reader, const struct cli_option *row,
		   const yaml_node_t *value, const char **text)
{
	const char *slash = strrchr(reader->path, '/'), *mark = row->file, *path, *own;
	int err;

	if (!mark || strncmp(*text, mark, strlen(mark)) != 0)
		return 0;
	path = *text + strlen(mark);
	if (slash && *path != '/')
		path = keep_text(reader->scenario, "%.*s/%s", (int)(slash - reader->path),
				 reader->path, path);
	err = path ? note_file(reader->scenario, row->name, path) : -ENOMEM;
	if (err)
		return err;
	own = scenario_where(reader->sent, path);
	if (!own)
		return scenario_refuse(reader, value, "%s: '%s' was not sent", row->name, path);
	*text = keep_text(reader->scenario, "%s%s", mark, own);
	return *text ? 0 : -ENOMEM;
}

static int value_text(struct scenario_reader *reader, const yaml_node_t *value,
		      const struct cli_option *row, const char **ret_text)
{
	const char *name = row->name;
	bool may_be_list = !strcmp(name, "expect-status") || !strcmp(name, "source");
	int err;

	if (value->type == YAML_SEQUENCE_NODE && may_be_list)
		err = join(reader, value, name, ret_text);
	else
		err = scenario_text(reader, value, name, ret_text);
	return err ? err : resolve(reader, row, value, ret_text);
}

static int apply_flag(struct scenario_reader *reader, const struct cli_option *row,
		      const yaml_node_t *value, void *settings)
{
	const char *text;
	int err = scenario_text(reader, value, row->name, &text);

	if (err)
		return err;
	if (!strcmp(text, "false"))
		return 0;
	if (strcmp(text, "true") != 0)
		return scenario_refuse(reader, value, "%s: '%s' is not true or false", row->name,
				       text);
	return cli_apply(row, settings, NULL, reader->ret_error);
}

int scenario_option_apply(struct scenario_reader *reader, const struct scenario_options *which,
			  yaml_node_t *key, yaml_node_t *value, void *settings)
{
	const struct cli_option *row =
		scenario_option_find(which, (const char *)key->data.scalar.value);
	autofree char *error = NULL;
	const char *text = NULL;
	int err;

	if (!row->argument)
		return apply_flag(reader, row, value, settings);
	err = value_text(reader, value, row, &text);
	if (err)
		return err;
	err = cli_apply(row, settings, text, &error);
	if (err == -EINVAL && error)
		return scenario_refuse(reader, value, "%s",
				       error + (strncmp(error, "--", 2) ? 0 : 2));
	return err;
}
