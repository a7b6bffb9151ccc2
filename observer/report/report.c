// SPDX-License-Identifier: MIT
/* Reads run documents, merges them, prints the report; see report.h. */
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sinks/recording/recording.h"
#include "output.h"
#include "sojourn/array.h"
#include "sojourn/check.h"
#include "sojourn/cli.h"
#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/log.h"
#include "sojourn/run.h"
#include "sojourn/trace.h"
#include "sojourn/units.h"

struct options {
	const struct report_format *format;
	const char *output;
	const char *json;
	const char *trace;
	size_t slowest;
	bool keep_samples;
	bool compare;
	bool check;
	bool schema;
	bool verbose;
};

/*
 * The subject of a report: one run of all documents, or each of them. Documents of a folder have its
 * name, which makes them one side of a comparison.
 */
struct set {
	struct run **runs;
	char **names;
	size_t count;
};

static void close_set(struct set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		run_free(set->runs[i]);
		free(set->names[i]);
	}
	free(set->runs);
	free(set->names);
}

static const char *set_format(void *format, const char *value)
{
	*(const struct report_format **)format = report_format_named(value);
	return report_format_named(value) ? NULL : report_format_names;
}

#define AT(member)     CLI_AT(struct options, member)
#define FILE_OR_STDOUT .minimum = 1, .allowed = "a file, or - for standard output"

_Static_assert(JOIN_SLOWEST_MAX == 10000, "as --slowest says");

static const struct cli_option rows[] = {
	{"output", 'o', "FILE",
	 "Write the report to FILE, in the form that its end names: .html is a page with charts.",
	 CLI_TEXT, AT(output), FILE_OR_STDOUT, .elsewhere = "html"},
	{"format", 'f', "FORM", "Which form: text (default), html, markdown, json, csv or hlog.",
	 CLI_SET, .offset = offsetof(struct options, format), .set = set_format},
	{"compare", 'c', NULL,
	 "Keep the FILEs apart, and print how the others differ from the first. A folder of "
	 "documents is a run that was repeated.",
	 CLI_FLAG, AT(compare)},
	{"verbose", 'v', NULL,
	 "The whole text report: every percentile, resource and count, not only what comes first; "
	 "with "
	 "--compare that of each FILE, too.",
	 CLI_FLAG, AT(verbose)},
	{"check", 0, NULL,
	 "Print, instead of a report, for each FILE that it holds, or which invariants it breaks.",
	 CLI_FLAG, AT(check)},
	{"schema", 0, NULL,
	 "Print the JSON Schema of run documents, and nothing else; without FILE.", CLI_FLAG,
	 AT(schema)},
	{"json", 'j', "FILE", "Write the merged document to FILE too; - prints it instead.",
	 CLI_TEXT, AT(json), FILE_OR_STDOUT},
	{"trace", 't', "FILE",
	 "Write the slowest exchanges' timelines to FILE too, for ui.perfetto.dev.", CLI_TEXT,
	 AT(trace), FILE_OR_STDOUT},
	{"slowest", 'n', "N", "How many of the slowest joined exchanges to print (default 10).",
	 CLI_NUMBER, AT(slowest), .maximum = JOIN_SLOWEST_MAX,
	 .allowed = "a whole number from 0 to 10000"},
	{"keep-samples", 0, NULL,
	 "With --json: leave single exchanges in although they are joined.", CLI_FLAG,
	 AT(keep_samples)},
};

static const struct cli_table table = {"Options", rows, ARRAY_SIZE(rows), 0};

static const struct cli_command command = {
	.program = "sojourn report",
	.usage = "[OPTION...] FILE... [OPTION...]",
	.intro = "Prints run documents as one report: of the observer, of the driver, of both, of "
		 "any number of drivers or hosts, whose counts and histograms add. A FILE may be "
		 "a recording, too. - is standard input.",
	.tables = {&table},
	.outro = "Exit codes: 0 printed; 1 failed, or with --check an invariant is broken; 2 wrong "
		 "options or not a run document.\n\n"
		 "Examples:\n"
		 "  $ sojourn report observer.json driver.json\n"
		 "  $ sojourn report run.json -o report.html\n"
		 "  $ sojourn report --compare before.json after.json\n"
		 "  $ sojourn report --compare before/ after/\n",
};

/* Report what the file lacks; all later statements are true of the rest. */
static void say_gaps(const char *path, const struct recording *recording,
		     const struct recording_summary *summary)
{
	if (recording->cut_off)
		log_warn("'%s': the last reading is cut off: %zu whole ones are reported", path,
			 summary->readings);
	if (summary->damaged)
		log_warn("'%s': lines that are no reading: %zu; left out", path, summary->damaged);
	if (summary->sessions > 1)
		log_warn("'%s': %u observations, added up; the %s between them are nowhere", path,
			 summary->sessions, as_setting((double)summary->unobserved_ns));
}

static int read_recording(const char *path, struct run **ret_run)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	struct recording_summary summary = {0};
	autofree char *error = NULL;
	int r = recording_open(path, &recording, &error);

	if (!r)
		r = recording_total(recording, ret_run, &summary);
	if (r == -EINVAL)
		return cli_error(&command, "'%s': %s", path,
				 error ? error : "a recording without one whole reading");
	if (r < 0)
		return log_errno(r, "cannot read '%s'", path);
	say_gaps(path, recording, &summary);
	return 0;
}

/* A report of contradictory figures would look like any other. */
static int warn_of_broken(const char *path, const struct run *run)
{
	char **broken = NULL;
	size_t count = 0;
	int r = run_check(run, &broken);

	while (broken && broken[count])
		count++;
	if (count)
		log_warn("'%s': figures contradict each other (%zu), so the report may be wrong: "
			 "'sojourn report --check' names them",
			 path, count);
	run_strings_free(broken);
	return r < 0 ? log_errno(r, "cannot check '%s'", path) : 0;
}

static int read_one(const char *path, struct run **ret_run)
{
	autofree char *error = NULL;
	int r;

	if (strcmp(path, "-") && recording_is(path)) {
		r = read_recording(path, ret_run);
		return r ? r : warn_of_broken(path, *ret_run);
	}
	r = run_read(path, ret_run, &error);
	if (r == -EINVAL)
		return cli_error(&command, "'%s': %s", path, error ? error : "not a run document");
	return r < 0 ? log_errno(r, "cannot read '%s'", path) : warn_of_broken(path, *ret_run);
}

/* For a recording check the sum of its readings, as it has no derived text. */
static int find_broken(const char *path, char ***broken)
{
	bool recorded = strcmp(path, "-") && recording_is(path);
	autofree char *text = NULL, *error = NULL;
	autorun struct run *run = NULL;
	size_t length = 0;
	int r;

	if (recorded) {
		r = read_recording(path, &run);
	} else {
		r = run_read_text(path, &text, &length);
		if (r < 0)
			return log_errno(r, "cannot read '%s'", path);
		r = run_from_json(text, length, &run, &error);
		if (r == -EINVAL)
			return cli_error(&command, "'%s': %s", path,
					 error ? error : "not a run document");
	}
	if (!r)
		r = run_check(run, broken);
	if (!r && !recorded)
		r = run_check_derived(text, length, run, broken);
	return r == -ENOMEM ? log_errno(r, "cannot check '%s'", path) : r;
}

/* 1: something is broken. */
static int check_file(const char *path)
{
	char **broken = NULL;
	int r = find_broken(path, &broken);

	for (char **text = broken; text && *text; text++)
		printf("%s: %s\n", path, *text);
	if (!r && !broken)
		printf("%s: holds\n", path);
	if (!r && broken)
		r = 1;
	run_strings_free(broken);
	return r;
}

/* Check each alone, so that one unreadable file does not keep the others from being checked. */
static int check_files(int count, char **paths)
{
	int worst = 0;

	for (int i = 0; i < count; i++) {
		int r = check_file(paths[i]);

		if (r < 0 && worst != -EINVAL)
			worst = r;
		else if (r > 0 && !worst)
			worst = r;
	}
	if (fflush(stdout))
		worst = log_errno(-EIO, "cannot write to standard output");
	return worst;
}

static int merge_in(struct run *run, const char *path)
{
	autorun struct run *other = NULL;
	autofree char *error = NULL;
	int r = read_one(path, &other);

	if (r < 0)
		return r;
	r = run_check_times(run, other, &error);
	if (!r)
		r = run_merge(run, other, &error);
	if (r == -EINVAL)
		return cli_error(&command, "'%s': %s", path, error);
	return r < 0 ? log_errno(r, "cannot merge '%s'", path) : 0;
}

static int read_into(struct set *set, const char *path, const char *called)
{
	autofree char *name = strdup(called);
	int r;

	if (!name || ARRAY_GROW(set->runs, set->count) < 0 ||
	    ARRAY_GROW(set->names, set->count) < 0)
		return log_errno(-ENOMEM, "cannot read '%s'", path);
	r = read_one(path, &set->runs[set->count]);
	if (r < 0)
		return r;
	set->names[set->count++] = TAKE_PTR(name);
	return 0;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

static int is_document(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && !strcmp(dot, ".json");
}

/* Read each document of a folder, as a repetition of one run. */
static int read_folder(struct set *set, char *folder)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, is_document, alphasort);
	int r = count < 0 ? log_errno(-errno, "cannot read '%s'", folder) : 0;

	for (char *end = strrchr(folder, '/'); end && end > folder && !end[1];
	     end = strrchr(folder, '/'))
		*end = '\0';
	if (!count)
		r = cli_error(&command, "'%s': a folder without documents (*.json)", folder);
	for (int i = 0; i < count; i++) {
		autofree char *path = NULL;

		if (!r && asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0)
			r = log_errno(-ENOMEM, "cannot read '%s'", folder);
		r = r ? r : read_into(set, path, folder);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* "after" of "runs/after.json". */
static char *short_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(base);

	if (length > 5 && !strcmp(base + length - 5, ".json"))
		length -= 5;
	return strndup(base, length);
}

static bool is_unique(const struct set *set, const char *path, const char *name)
{
	for (size_t i = 0; i < set->count; i++) {
		autofree char *other = short_name(set->names[i]);

		if (!other || (!strcmp(name, other) && strcmp(path, set->names[i])))
			return false;
	}
	return true;
}

/* Names without folders say which is which, unless files of several folders are named alike. */
static int shorten_names(struct set *set)
{
	bool unique = true;

	for (size_t i = 0; i < set->count && unique; i++) {
		autofree char *name = short_name(set->names[i]);

		if (!name)
			return -ENOMEM;
		unique = is_unique(set, set->names[i], name);
	}
	for (size_t i = 0; i < set->count && unique; i++) {
		char *name = short_name(set->names[i]);

		if (!name)
			return -ENOMEM;
		free(set->names[i]);
		set->names[i] = name;
	}
	return 0;
}

static int read_side(struct set *set, char *path)
{
	return is_folder(path) ? read_folder(set, path) : read_into(set, path, path);
}

static bool has_two_names(const struct set *set)
{
	for (size_t i = 1; i < set->count; i++)
		if (strcmp(set->names[0], set->names[i]))
			return true;
	return false;
}

static int read_all(const struct options *options, int count, char **paths, struct set *set)
{
	int r = 0;

	for (int i = 0; !r && i < count; i++)
		r = options->compare ? read_side(set, paths[i])
		    : i		     ? merge_in(set->runs[0], paths[i])
				     : read_into(set, paths[i], paths[i]);
	if (!r && options->compare && !has_two_names(set))
		r = cli_error(&command,
			      "--compare: '%s' is all that is given: give two documents "
			      "or folders",
			      set->names[0]);
	return !r && options->compare ? shorten_names(set) : r;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int write_trace(const struct run *run, const char *path)
{
	int r;

	if (!run || !run->joined || !run->joined->slowest_count) {
		log_error("no exchange is joined: '%s' is not written", path);
		return -ENODATA;
	}
	r = trace_write(run, path);
	return r < 0 ? log_errno(r, "cannot write '%s'", path) : 0;
}

/* Join all single exchanges of the documents. */
static int join(const struct set *set, const struct options *options)
{
	for (size_t i = 0; i < set->count; i++) {
		int r = join_run(set->runs[i], options->slowest);

		if (r < 0)
			return log_errno(r, "cannot join");
		if (!options->keep_samples)
			join_drop_samples(set->runs[i]);
	}
	return 0;
}

static int print(const struct set *set, const struct options *options)
{
	const struct report_format *format =
		options->format ? options->format : report_format_for(options->output);
	int r = 0;

	if (options->json)
		r = run_write(set->runs[0], options->json);
	if (r < 0)
		return log_errno(r, "cannot write '%s'", options->json);
	r = options->trace ? write_trace(set->runs[0], options->trace) : 0;
	if (r < 0 || (!options->output && (is_stdout(options->json) || is_stdout(options->trace))))
		return r;
	r = report_output(format, set->runs, (const char *const *)set->names, set->count,
			  options->verbose, options->output);
	return r < 0 ? log_errno(r, "cannot write the report%s%s", options->output ? " to " : "",
				 options->output ? options->output : "")
		     : 0;
}

/* Check for conflicting options. */
static int check(const struct options *options, int count)
{
	const struct report_format *format =
		options->format ? options->format : report_format_for(options->output);
	int outputs = (!options->output || is_stdout(options->output)) + is_stdout(options->json) +
		      is_stdout(options->trace);

	if (options->schema)
		return count ? cli_error(&command, "--schema: is of all documents: give no FILE")
			     : 0;
	if (!count)
		return cli_error(&command, "no FILE: give run documents");
	if (!format)
		return cli_error(
			&command,
			"--output: '%s': no form of a report ends so: allowed are %s, or say "
			"which by --format",
			options->output, report_format_endings);
	if (options->check && (options->compare || options->json || options->trace ||
			       options->output || options->format || options->keep_samples))
		return cli_error(&command, "--check prints no report: without --compare, --json, "
					   "--trace, --output, --format and --keep-samples");
	if (options->compare && count < 2)
		return cli_error(&command, "--compare: give two documents or more");
	if (options->compare &&
	    (options->json || options->trace || !report_format_compares(format)))
		return cli_error(&command,
				 "--compare keeps documents apart: --json, --trace and --format "
				 "json, csv and hlog are of one");
	if (options->output && outputs > 1)
		return cli_error(&command, "only one of --output, --json and --trace can be -");
	return 0;
}

static int print_schema(void)
{
	autofree char *text = run_schema_to_json();
	int r = text ? run_write_text(text, "-") : -ENOMEM;

	return r ? log_errno(r, "cannot print the schema") : 0;
}

static int exit_code(int r)
{
	if (r == -EINVAL)
		return EXIT_USAGE;
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int report_main(int argc, char **argv)
{
	struct options options = {.slowest = JOIN_SLOWEST};
	CLEANUP(close_set) struct set set = {0};
	/* Options may stand anywhere among the documents, which are collected at argv[1]. */
	int count, r = cli_parse(&command, argc, argv, &options, argv + 1, &count);

	log_open("sojourn report", false);
	if (r == -ECANCELED)
		return EXIT_SUCCESS;
	if (!r)
		r = check(&options, count);
	if (!r && options.schema)
		return exit_code(print_schema());
	if (!r && options.check)
		return exit_code(check_files(count, argv + 1));
	if (!r)
		r = read_all(&options, count, argv + 1, &set);
	if (!r)
		r = join(&set, &options);
	if (!r)
		r = print(&set, &options);
	return exit_code(r);
}
