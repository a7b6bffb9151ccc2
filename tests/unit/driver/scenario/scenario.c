// SPDX-License-Identifier: MIT
/* Scenario files: their contents as options, the place of each error, and traps. */
#include "driver/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "scenario/scenario.h"
#include "scenario/reader.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define HEAD "target: http://127.0.0.1:80\n"
#define STEP "- {name: a}\n"

static struct options defaults(void)
{
	return (struct options){.load = {.connections = 16}, .run = {.threads = 1}};
}

/* Load as `run` does, without a command line. */
static int load(const char *text, size_t length, struct options *ret_options,
		struct scenario **ret_scenario, char **ret_error)
{
	int err;

	*ret_options = defaults();
	err = scenario_parse("f.yaml", text, length, ret_options, ret_scenario, ret_error);
	if (err)
		return err;
	return scenario_check(*ret_scenario, ret_options, ret_error);
}

/* Expect @text to be refused with an error at @place ("LINE:COLUMN: "). */
static void refuse_bytes(const char *text, size_t length, const char *place, const char *expected)
{
	struct scenario *scenario = NULL;
	autofree char *error = NULL;
	struct options options;
	char begin[64];

	snprintf(begin, sizeof(begin), "f.yaml:%s", place);
	if (load(text, length, &options, &scenario, &error) != -EINVAL || !error)
		fail_msg("not refused: %s", text);
	if (strncmp(error, begin, strlen(begin)) || !strstr(error, expected) || strchr(error, '\n'))
		fail_msg("'%s' is not '%s … %s'", error, begin, expected);
	scenario_free(scenario);
	options_clear(&options);
}

static void refuse(const char *text, const char *place, const char *expected)
{
	refuse_bytes(text, strlen(text), place, expected);
}

static struct scenario *take(const char *text, struct options *ret_options)
{
	struct scenario *scenario = NULL;
	autofree char *error = NULL;

	if (load(text, strlen(text), ret_options, &scenario, &error))
		fail_msg("refused: %s", error ? error : "without memory");
	return scenario;
}

static void clear(struct scenario *scenario, struct options *options)
{
	scenario_free(scenario);
	options_clear(options);
}

static const char full[] = "name: shop\n"
			   "target: http://127.0.0.1:8080\n"
			   "load: {connections: 7, duration: 3s, warmup: 1s, think: 2s,\n"
			   "  source: [127.0.0.2, 127.0.0.3], new-connections: true}\n"
			   "assert: [errors<1%, p99<5ms]\n"
			   "on-failure: next\n"
			   "steps:\n"
			   "- name: create\n"
			   "  path: /items\n"
			   "  set: {key: 'k{{counter:4}}'}\n"
			   "  headers: {X-A: step}\n"
			   "  body: '{{var:key}}'\n"
			   "  expect-status: [200, 201]\n"
			   "  capture:\n"
			   "    id: {json: /id, max: 9}\n"
			   "    tag: {header: ETag}\n"
			   "- name: read\n"
			   "  path: /items/{{var:id}}\n"
			   "  think: 5ms\n"
			   "defaults: {headers: {X-A: all, X-B: all}}\n";

static void check_first(const struct scenario *scenario, const struct options *run)
{
	const struct scenario_step *step = &scenario->steps[0];
	struct request request;

	scenario_step_request(scenario, step, &run->request, &request);
	assert_string_equal(step->name, "create");
	assert_string_equal(request.method, "POST");
	assert_string_equal(step->target.path, "/items");
	assert_int_equal(request.header_count, 2);
	assert_string_equal(request.headers[0], "X-B: all");
	assert_string_equal(request.headers[1], "X-A: step");
	assert_string_equal(request.body, "{{var:key}}");
	assert_int_equal(request.expectation.status_count, 2);
	assert_int_equal(request.expectation.statuses[1], 201);
	assert_int_equal(request.captures->count, 2);
	assert_int_equal(step->set_count, 1);
}

static void test_everything(void **state)
{
	struct options run;
	struct request request;
	struct scenario *scenario = take(full, &run);

	assert_string_equal(scenario->name, "shop");
	assert_int_equal(run.load.connections, 7);
	assert_int_equal(run.load.duration_ns, 3 * NSEC_PER_SEC);
	assert_int_equal(run.load.warmup_ns, NSEC_PER_SEC);
	assert_int_equal(run.link.sources.count, 2);
	assert_true(run.link.new_connections);
	assert_int_equal(run.assertion_count, 2);
	assert_int_equal(scenario->on_failure, SCENARIO_NEXT);
	assert_int_equal(scenario->order, SCENARIO_CYCLE);
	assert_int_equal(scenario->step_count, 2);
	check_first(scenario, &run);
	assert_int_equal(scenario->variable_count, 3);
	assert_string_equal(scenario->variables[0].name, "key");
	assert_int_equal(scenario->variables[0].max, 1 + 20); /* of any counter */
	assert_int_equal(scenario->variables[1].max, 9);
	assert_int_equal(scenario->variables[2].max, CAPTURE_SIZE);
	scenario_step_request(scenario, &scenario->steps[1], &run.request, &request);
	assert_string_equal(request.method, "GET");
	assert_string_equal(request.headers[0], "X-A: all");
	assert_true(scenario->thinks);
	assert_int_equal(scenario->think_ns[0], 2 * NSEC_PER_SEC);
	assert_int_equal(scenario->think_ns[1], 5 * NSEC_PER_MSEC);
	clear(scenario, &run);
}

/* No scenario, or no YAML. */
static void test_not_a_scenario(void **state)
{
	refuse("", "1:1: ", "the file is empty");
	refuse("# nothing\n", "1:1: ", "the file is empty");
	refuse("just text\n", "1:1: ", "a mapping is needed");
	refuse("- a\n- b\n", "1:1: ", "a list is here; a mapping is needed");
	refuse(HEAD, "1:1: ", "'steps' is missing");
	refuse(HEAD "steps: []\n", "2:8: ", "a list of 1 to 64 steps is needed");
	refuse(HEAD "steps: {name: a}\n", "2:8: ", "a list of 1 to 64 steps is needed");
	refuse(HEAD "steps:\n- a\n", "3:3: ", "a mapping is needed");
	refuse(HEAD "steps:\n- {path: /}\n", "3:3: ", "the step has no 'name'");
	refuse("steps:\n- {name: a}\n", "2:3: ", "the step has no target");
	refuse(HEAD "steps:\n  - name: [a\n", "4:1: ", "not YAML: ");
	refuse("a: \tb\n\t- c", "2:1: ", "not YAML: ");
	refuse(HEAD "steps:\n" STEP "---\n" HEAD, "4:1: ", "a second document begins here");
	refuse_bytes("name: \xff\n", 8, " byte 6: ", "not YAML: ");
	refuse("a: *b\n", "1:4: ", "not YAML: found undefined alias");
}

/* Each kind of value where another is needed. */
static void test_wrong_values(void **state)
{
	refuse(HEAD "load: {connections: many}\nsteps:\n" STEP,
	       "2:21: ", "connections: 'many' is not a whole number from 1 to");
	refuse(HEAD "load: {connections: [1, 2]}\nsteps:\n" STEP, "2:21: ", "a list is here");
	refuse(HEAD "load: {new-connections: 1}\nsteps:\n" STEP,
	       "2:25: ", "'1' is not true or false");
	refuse(HEAD "load: 7\nsteps:\n" STEP, "2:7: ", "load: a value is here");
	refuse(HEAD "order: random\nsteps:\n" STEP,
	       "2:8: ", "'random' is not known; allowed: cycle, mix");
	refuse(HEAD "on-failure: stop\nsteps:\n" STEP, "2:13: ", "allowed: restart, next");
	refuse(HEAD "assert: [p99]\nsteps:\n" STEP, "2:10: ", "assert: 'p99'");
	refuse(HEAD "steps:\n- name: ''\n", "3:9: ", "'' is not a name");
	refuse(HEAD "steps:\n- name: 12345678901234567890123456789012\n", "3:9: ", "is not a name");
	refuse(HEAD "steps:\n- {name: a, path: items}\n", "3:19: ", "does not begin with /");
	refuse(HEAD "steps:\n- {name: a, path: /a b}\n", "3:19: ", "contains a blank");
	refuse(HEAD "steps:\n- {name: a, method: 'G T'}\n",
	       "3:21: ", "method: 'G T' is not a method");
	refuse(HEAD "steps:\n- {name: a, headers: {Expect: x}}\n",
	       "3:23: ", "'Expect' cannot be set");
	refuse(HEAD "steps:\n- {name: a, headers: {X: \"a\\nb\"}}\n",
	       "3:23: ", "control character");
	refuse(HEAD "steps:\n- {name: a, think: long}\n", "3:20: ", "'long' is not a duration");
	refuse(HEAD "steps:\n- {name: a, expect-status: [200, 99]}\n",
	       "3:28: ", "'99' is not a status");
	refuse(HEAD "steps:\n- {name: a, rows: /none/there}\n",
	       "3:19: ", "cannot open '/none/there'");
	refuse(HEAD "steps:\n- {name: a, body: \"a\\0b\"}\n", "3:19: ", "contains a NUL");
	refuse("target: ftp://a/\nsteps:\n" STEP, "1:1: ", "ftp:// is not supported");
	refuse(HEAD "steps:\n- {name: a, target: 'tcp://h'}\n", "3:13: ", "names no host");
}

static void test_keys(void **state)
{
	refuse(HEAD "stpes: 1\n",
	       "2:1: ", "'stpes' is not a key of a scenario; allowed: name, target,");
	refuse(HEAD "load: {json: a}\nsteps:\n" STEP,
	       "2:8: ", "'json' is not a key of load; allowed: ");
	refuse(HEAD "steps:\n- {name: a, uri: /}\n",
	       "3:13: ", "'uri' is not a key of a step; allowed: ");
	refuse(HEAD "steps:\n- {name: a, header: 'A: b'}\n", "3:13: ", "'header' is not a key");
	refuse(HEAD "defaults: {name: a}\nsteps:\n" STEP,
	       "2:12: ", "'name' is not a key of defaults");
	refuse(HEAD "name: a\nname: b\nsteps:\n" STEP, "3:1: ", "given twice, first in line 2");
	refuse(HEAD "steps:\n" STEP STEP, "4:10: ", "'a' is the step in line 3, too");
	refuse(HEAD "? [a]\n: b\n", "2:3: ", "a key is a plain word");
	refuse(HEAD "<<: {name: a}\nsteps:\n" STEP, "2:1: ", "'<<' is not a key");
}

static void test_captures(void **state)
{
	refuse(HEAD "steps:\n- {name: a, capture: {v: {json: id}}}\n",
	       "3:27: ", "not a JSON pointer");
	refuse(HEAD "steps:\n- {name: a, capture: {v: {xml: id}}}\n",
	       "3:27: ", "'xml' is not a key");
	refuse(HEAD "steps:\n- {name: a, capture: {v: {max: 9}}}\n",
	       "3:26: ", "not said from what");
	refuse(HEAD "steps:\n- {name: a, capture: {v: {json: '', regex: a}}}\n",
	       "3:37: ", "'regex' follows 'json'");
	refuse(HEAD "steps:\n- {name: a, capture: {v: {json: '', max: 4097}}}\n",
	       "3:42: ", "'4097' is not a number of bytes");
	refuse(HEAD "steps:\n- {name: a, capture: {'v v': {json: ''}}}\n",
	       "3:23: ", "'v v' is not a variable's name");
}

/* A variable has a value in the steps after the one that captures it. */
static void test_variables(void **state)
{
	struct options options;

	refuse(HEAD "steps:\n- {name: a, path: '/{{var:v}}'}\n- {name: b, set: {v: x}}\n",
	       "3:13: ", "'{{var:v}}' has no value here");
	refuse(HEAD "steps:\n- {name: a, path: '/{{var:v}}', capture: {v: {json: ''}}}\n",
	       "3:13: ", "'{{var:v}}' has no value here");
	refuse(HEAD
	       "order: mix\nsteps:\n- {name: a, set: {v: x}}\n- {name: b, body: '{{var:v}}'}\n",
	       "5:13: ", "'{{var:v}}' has no value here");
	refuse(HEAD "steps:\n- {name: a, set: {v: '{{var:w}}', w: x}}\n", "3:22: ", "has no value");
	refuse(HEAD "steps:\n- {name: a, set: {v: '{{nothing}}'}}\n", "3:22: ", "is not a field");
	refuse(HEAD "steps:\n- {name: a, set: {v: '{{random-hex:5000}}'}}\n",
	       "3:22: ", "may exceed 4096 bytes");
	clear(take(HEAD "steps:\n- {name: a, set: {v: x, w: '{{var:v}}'}, body: '{{var:w}}'}\n",
		   &options),
	      &options);
}

/* Keys that need or exclude each other. */
static void test_contradictions(void **state)
{
	refuse(HEAD "steps:\n- {name: a, weight: 2}\n", "3:13: ", "it goes with 'order: mix'");
	refuse(HEAD "load: {rate: 5}\nsteps:\n- {name: a, think: 1s}\n",
	       "4:13: ", "exclude each other");
	refuse(HEAD "steps:\n- {name: a, payload: x}\n",
	       "3:13: ", "payload: http: targets have none");
	refuse("target: tcp://127.0.0.1:1\nsteps:\n- {name: a, path: /}\n", "3:13: ", "path: ");
	refuse("target: tcp://127.0.0.1:1\nsteps:\n"
	       "- {name: a, payload: x, payload-hex: '00'}\n",
	       "3:38: ", "payload-hex: --payload is the request already");
	refuse("target: tcp://127.0.0.1:1\nsteps:\n- {name: a, payload: x}\n",
	       "3:3: ", "give --framing");
	refuse("target: tcp://127.0.0.1:1\nsteps:\n- {name: a, headers: {A: b}}\n",
	       "3:13: ", "header: tcp: targets have none");
	refuse("target: tcp://127.0.0.1:1\nsteps:\n"
	       "- {name: a, payload: '{{x}}', framing: resp}\n",
	       "3:13: ", "payload: '{{x}}' is not a field");
	/* The escape is a line end by then; the sentence stays on one line. */
	refuse("target: tcp://127.0.0.1:80\nsteps:\n"
	       "- {name: a, payload: '{{x\\ny}}', framing: resp}\n",
	       "3:13: ", "payload: '{{x y}}' is not a field");
}

/* Return @head and @count times @text, with its number in place of %u. */
static char *repeat(const char *head, const char *text, unsigned int count)
{
	char *result = NULL;
	size_t size;
	FILE *file = open_memstream(&result, &size);

	assert_non_null(file);
	fputs(head, file);
	for (unsigned int i = 0; i < count; i++) {
		const char *number = strstr(text, "%u");

		fprintf(file, "%.*s", (int)(number ? number - text : 0), text);
		if (number)
			fprintf(file, "%u", i);
		fputs(number ? number + 2 : text, file);
	}
	fclose(file);
	return result;
}

/* Billion laughs: an alias counts each time. Endless structures are refused. */
static void test_hostile(void **state)
{
	autofree char *steps = repeat(HEAD "steps:\n", "- {name: s%u}\n", 65);
	autofree char *headers = repeat(HEAD "steps:\n- {name: a, headers: {", "h%u: a, ", 101);
	autofree char *deep = repeat("a: ", "[", 1000000);
	autofree char *anchors = repeat("a: [", "&a%u x, ", 60000);
	autofree char *body = repeat("name: &b '", "0123456789", 50000);
	autofree char *laughs = NULL, *ring = NULL;
	autofree char *used = repeat("", "- {name: s%u, body: *b}\n", 64);

	refuse(steps, "3:1: ", "a list of 1 to 64 steps");
	refuse(anchors, "1:", "one anchor too many; 256 are allowed");
	refuse(headers, "", "");
	refuse(deep, "1:19: ", "nested too deeply; 16 levels are allowed");
	assert_true(asprintf(&laughs, "x: %s\n", "[&a [x], &b [*a, *a], &c [*b, *b]]") > 0);
	refuse(laughs, "1:1: ", "'x' is not a key");
	assert_true(asprintf(&ring, HEAD "steps: &s\n- {name: a, headers: *s}\n") > 0);
	refuse(ring, "2:8: ", "a mapping is needed");
	free(ring);
	ring = strdup(HEAD "steps:\n- &s {name: a, capture: *s}\n");
	refuse(ring, "", "");
	free(laughs);
	assert_true(asprintf(&laughs, HEAD "defaults: {body: &b '%s'}\nsteps:\n%s",
			     body + strlen("name: &b '"), used) > 0);
	refuse(laughs, "2:", "the file's values exceed 16 MiB, aliases replaced");
}

/* Aliases may reuse pieces of a file. */
static void test_aliases(void **state)
{
	struct options options;
	struct scenario *scenario =
		take(HEAD "steps:\n"
			  "- {name: a, headers: &h {A: b}, expect-status: &s [200]}\n"
			  "- {name: b, headers: *h, expect-status: *s}\n",
		     &options);

	assert_string_equal(scenario->steps[1].request.headers[0], "A: b");
	clear(scenario, &options);
}

/* The rows `| `key` |` of the section @title are exactly the keys of a table. */
static void check_section(const char *doc, const char *title,
			  const struct scenario_mapping *mapping,
			  const struct scenario_options *options)
{
	const char *section = strstr(doc, title), *end;
	size_t rows = 0, keys = mapping->count;
	char row[64];

	assert_non_null(section);
	end = strstr(section + 3, "\n## ");
	end = end ? end : section + strlen(section);
	for (const char *at = section; (at = strstr(at, "\n| `")) && at < end; at++)
		rows++;
	for (size_t i = 0; i < mapping->count; i++) {
		snprintf(row, sizeof(row), "\n| `%s` | %s |", mapping->keys[i].name,
			 mapping->keys[i].value);
		if (!strstr(section, row) || strstr(section, row) >= end)
			fail_msg("docs/scenarios.md, '%s' lacks '%s'", title, row + 1);
	}
	for (size_t i = 0; options && i < options->count; i++)
		for (size_t j = 0; j < options->tables[i]->count; j++) {
			const char *name = options->tables[i]->rows[j].name;

			if (!scenario_option_find(options, name))
				continue;
			keys++;
			snprintf(row, sizeof(row), "\n| `%s` |", name);
			if (!strstr(section, row) || strstr(section, row) >= end)
				fail_msg("docs/scenarios.md, '%s' lacks '%s'", title, name);
		}
	assert_int_equal(rows, keys);
}

static void test_documentation(void **state)
{
	autofree char *doc = NULL, *error = NULL;
	size_t length;
	char *grown;

	assert_int_equal(
		option_read_file("doc", DOCS_DIR "/scenarios.md", 1 << 20, &doc, &length, &error),
		0);
	grown = realloc(doc, length + 1);
	assert_non_null(grown);
	doc = grown;
	doc[length] = '\0';
	check_section(doc, "\n## Keys of a scenario", &scenario_top, NULL);
	check_section(doc, "\n## Keys of load", &scenario_load_mapping, &scenario_run_options);
	check_section(doc, "\n## Keys of a step", &scenario_step_mapping,
		      &scenario_request_options);
	check_section(doc, "\n## Keys of a capture", &scenario_capture_mapping, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),     cmocka_unit_test(test_not_a_scenario),
		cmocka_unit_test(test_wrong_values),   cmocka_unit_test(test_keys),
		cmocka_unit_test(test_captures),       cmocka_unit_test(test_variables),
		cmocka_unit_test(test_contradictions), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_aliases),	       cmocka_unit_test(test_documentation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
