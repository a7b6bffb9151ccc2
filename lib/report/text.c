// SPDX-License-Identifier: MIT
/* The report for people: which parts a document has, and their order. */
#include "sojourn/report.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "parts.h"
#include "report/page/ascii.h"

#define DEFAULT_WIDTH 100

/* The input of the parts. */
struct report {
	struct page page;
	const struct run *run;
	const struct report_options *options;
	const struct run_service *driven; /* NULL: none, or several */
	struct report_compared compared;  /* of hosts, in a table of their own */
	unsigned int rows;		  /* of the distribution; 0: no room for it */
	size_t services;		  /* that have a row, of many */
	bool airy;			  /* blank lines around the distribution */
	bool followed;			  /* resources follow */
};

void report_options_for(FILE *file, struct report_options *ret_options)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(fileno(file));
	struct winsize size = {0};

	if (terminal)
		ioctl(fileno(file), TIOCGWINSZ, &size);
	*ret_options = (struct report_options){
		.colour = terminal && !(no_colour && *no_colour) && term && strcmp(term, "dumb"),
		.ascii = report_locale_is_ascii(),
		.width = size.ws_col,
	};
}

static void print_document(const struct page *page, const struct run *run)
{
	autoitems struct items items = items_begin(page, "", 0);

	if (run->tool)
		items_add(&items, "%s", run->tool);
	if (run->host)
		items_add(&items, "host %s", run->host);
	if (run->kernel)
		items_add(&items, "kernel %s", run->kernel);
	if (run->started_at)
		items_add(&items, "%s", run->started_at);
	if (run->duration_ns)
		items_time(&items, "over", (double)run->duration_ns);
}

/* ---- the first lines ---- */

/* Print the verdict, and failures. The verdict on several hosts stands above everything. */
static void print_verdict(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;
	struct report_verdict verdict;

	if (report->driven && report_hangs(run, report->driven, &verdict))
		report_print_verdict(page, &verdict);
	if (!report_headline(run->driver, &verdict) && !report_hosts_verdict(run, &verdict) &&
	    report_verdict(run, report->driven, &verdict))
		report_print_verdict(page, &verdict);
	report_failures(page, run->driver, report->options->broken);
	report_print_notes(page, run->driver);
}

static void print_breakdown(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;
	const struct run_service *service = report->driven;
	uint16_t port = report_target_port(run->driver);

	report_identity(page, service, NULL);
	report_tree(page, run, service);
	if (port && port != service->port)
		page_wrap(page, 0,
			  "note: no exchanges were seen at port %u, which the driver was sent to:"
			  " this is the busiest service",
			  port);
	report_print_hints(page, run, service);
	if (page->verbose && run->joined)
		fputc('\n', page->file);
	report_joined(page, run);
}

/* Print a driver without an observer, or whose requests reached none of the services. */
static void print_driver_first(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;

	report_round_trip(page, run->driver);
	if (!run->driver->rate && !page->verbose)
		report_beyond(page, run->driver);
}

static void print_slow_host(const struct page *page, const struct run *run)
{
	struct report_verdict verdict;

	if ((!run->driver || !report_headline(run->driver, &verdict)) &&
	    report_hosts_verdict(run, &verdict))
		report_print_verdict(page, &verdict);
}

static void print_head(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;

	if (run->driver)
		report_limited(page, run->driver);
	report_sweep_limited(page, run);
	print_slow_host(page, run);
	if (page->verbose || !run->driver)
		print_document(page, run);
	if (!run->driver) {
		report_hosts(page, run, report->services);
		return;
	}
	report_target(page, run);
	print_verdict(report);
	fputc('\n', page->file);
	report_response_time(page, run->driver);
	if (run->driver->rate && !page->verbose)
		report_beyond(page, run->driver);
	if (report->driven)
		print_breakdown(report);
	else
		print_driver_first(report);
	if (run->driver->observer_error)
		page_wrap(page, 0, "note: without the observer's part: %s",
			  run->driver->observer_error);
	report_hosts(page, run, report->services);
	report_driver_rows(page, run);
}

/* ---- distribution of latencies ---- */

/* The report of one service fits on a screen. */
#define LINES	    25U
#define FEWEST_ROWS 4U

static unsigned int lines_of(const char *text)
{
	unsigned int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static unsigned int rows_beside(const struct report *report, unsigned int lines)
{
	unsigned int rows = lines < LINES ? LINES - lines : 0;

	if (report->page.verbose || rows > REPORT_DISTRIBUTION_ROWS)
		return REPORT_DISTRIBUTION_ROWS;
	return rows < FEWEST_ROWS ? 0 : rows;
}

static void print_distribution(const struct report *report)
{
	const struct run_driver *driver = report->run->driver;

	if (driver && (report->page.verbose || report->airy))
		fputc('\n', report->page.file);
	if (!driver || !report->rows || !report_has_distribution(run_driver_latency(driver)))
		return;
	report_distribution(&report->page, run_driver_latency(driver), report->rows);
	if (report->followed && (report->page.verbose || report->airy))
		fputc('\n', report->page.file);
}

/* ---- resources, and the rest ---- */

static void print_resources(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;

	if (report->driven) {
		report_state(page, run, report->driven);
		if (page->verbose)
			report_beside(page, report->driven);
		report_details(page, run, report->driven);
	}
	if (run->driver && page->verbose) {
		if (report->driven)
			fputc('\n', page->file);
		report_driver(page, run);
	}
	report_sweep(page, run);
	report_findings(page, run);
	if (page->verbose)
		report_not_seen(page, run);
}

/* Print a service that the driver did not load. */
static void print_service(const struct report *report, const struct run_service *service)
{
	const struct page *page = &report->page;
	bool used = service->exchanges || service->accepted;
	struct report_verdict verdict;

	report_identity(page, service, service->exchanges ? NULL : "no exchanges");
	/* The driver's verdict explains a service without exchanges. */
	if ((service->exchanges || !report->run->driver) &&
	    report_service_verdict(report->run, service, &verdict))
		report_print_verdict(page, &verdict);
	report_print_service_note(page, service);
	if (page->tight == TIGHT_MOST)
		report_outcome_line(page, service);
	if (service->exchanges || (used && page->verbose))
		report_stages(page, service);
	report_print_hints(page, report->run, service);
	report_state(page, report->run, service);
	report_details(page, report->run, service);
}

/* Return whether nothing came and nothing was missed. */
static bool is_idle(const struct run_service *service)
{
	bool any = service->exchanges || service->accepted || service->open.unread.value ||
		   service->open.read.value || service->accept_queue.overflows.value ||
		   report_pushed(service) || service->websocket.older;

	for (enum run_loss loss = 0; loss < RUN_LOSS_COUNT; loss++)
		any |= service->losses[loss] != 0;
	return !any;
}

/* Return whether the service is in a row of its host, pod or container. */
static bool is_compared(const struct report *report, const struct run_service *service)
{
	return report_is_compared(&report->compared, report->run, service);
}

/* Maximum of named services; those with known processes come first. */
#define IDLE_NAMED	 6
#define IDLE_NAMED_TIGHT 1

/* Print the idle services in one line. */
static void print_idle(const struct report *report)
{
	const struct run *run = report->run;
	size_t named = 0, count = 0, most = report->page.tight ? IDLE_NAMED_TIGHT : IDLE_NAMED;
	char name[REPORT_NAME];
	autoitems struct items items = items_begin(&report->page, "no exchanges ", LABEL_COLUMNS);

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < run->service_count; i++) {
			const struct run_service *service = &run->services[i];

			if (service == report->driven || !is_idle(service) ||
			    is_compared(report, service) ||
			    (service->process_count > 0) != (pass == 0))
				continue;
			if (!count++)
				fputc('\n', report->page.file);
			if (named == most)
				continue;
			named++;
			items_add(&items, "%s", report_name(service, name));
		}
	}
	if (count > named)
		items_add(&items, "%zu more", count - named);
}

/* Name the parts that were not looked for, or count them; the reasons follow with -v. */
static void print_more(const struct page *page, const struct run *run)
{
	struct items items;
	size_t count = 0;

	page_style(page, STYLE_DIM);
	items = items_begin(page, "", 0);
	items_add(&items, "-v prints more");
	for (char **note = run->not_seen; note && *note; note++, count++)
		if (!page->tight)
			items_add(&items, "not seen: %.*s", (int)strcspn(*note, ":"), *note);
	if (page->tight && count)
		items_add(&items, "not seen: %zu kind%s of exhaustion", count,
			  count == 1 ? "" : "s");
	items_end(&items);
	page_style(page, STYLE_PLAIN);
}

/* More services than this have a row each: printed whole they would exceed a screen. */
#define WHOLE_SERVICES 2U

/* Print services that the driver did not load, whole or as rows; with -v both. */
static void print_busy(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;
	autofree const struct run_service **busy = calloc(run->service_count + 1, sizeof(*busy));
	size_t count = 0;

	for (size_t i = 0; busy && i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (service != report->driven &&
		    (page->verbose || (!is_idle(service) && !is_compared(report, service))))
			busy[count++] = service;
	}
	if (count + (report->driven != NULL) > WHOLE_SERVICES) {
		fputc('\n', page->file);
		report_many(page, run, busy, count, report->services);
		if (!page->verbose)
			return;
	}
	for (size_t i = 0; i < count; i++) {
		fputc('\n', page->file);
		print_service(report, busy[i]);
	}
}

static void print_others(const struct report *report)
{
	const struct page *page = &report->page;
	const struct run *run = report->run;

	print_busy(report);
	if (!page->verbose)
		print_idle(report);
	report_host_ports(page, run);
	if (run->cost)
		report_cost(page, run);
	report_slots(page, run);
	if (!page->verbose && (run->driver || run->service_count))
		print_more(page, run);
}

/* ---- output ---- */

static struct page page_of(const struct report_options *options, FILE *file)
{
	return (struct page){
		.file = file,
		.colour = options->colour,
		.verbose = options->verbose,
		.width = options->width ? options->width : DEFAULT_WIDTH,
	};
}

static int put(char *text, const struct report_options *options, FILE *file)
{
	if (options->ascii)
		report_to_ascii(text);
	return fputs(text, file) < 0 ? -EIO : 0;
}

/* Render a part alone, to count its lines. */
static int render(const struct report *report, void (*print)(const struct report *report),
		  char **ret_text)
{
	struct report part = *report;
	autofree char *text = NULL;
	size_t size;

	part.page.file = open_memstream(&text, &size);
	if (!part.page.file)
		return -errno;
	print(&part);
	if (fclose(part.page.file))
		return -errno;
	*ret_text = TAKE_PTR(text);
	return 0;
}

static void print_host(const struct report *report)
{
	report_findings(&report->page, report->run);
	report_not_seen(&report->page, report->run);
}

/* A doctor's document has nothing else. */
int report_host(const struct run *run, const struct report_options *options, FILE *file)
{
	struct report report = {.page = page_of(options, NULL), .run = run};
	autofree char *text = NULL;
	int r;

	report.page.verbose = true;
	r = render(&report, print_host, &text);
	if (!r)
		r = put(text, options, file);
	return r || ferror(file) ? -EIO : 0;
}

/* The parts of a report, rendered. */
struct rendered {
	char *head, *resources, *others, *drawn;
};

static void rendered_done(struct rendered *rendered)
{
	free(rendered->head);
	free(rendered->resources);
	free(rendered->others);
	free(rendered->drawn);
	*rendered = (struct rendered){0};
}

/* Render all but the distribution, which takes the room that is left. */
static int render_all(const struct report *report, struct rendered *ret_rendered)
{
	int r;

	rendered_done(ret_rendered);
	r = render(report, print_head, &ret_rendered->head);
	if (!r)
		r = render(report, print_resources, &ret_rendered->resources);
	if (!r)
		r = render(report, print_others, &ret_rendered->others);
	return r;
}

static unsigned int lines_of_all(const struct rendered *rendered)
{
	return lines_of(rendered->head) + lines_of(rendered->resources) +
	       lines_of(rendered->others);
}

/* Minimum of services with a row, even if the report then exceeds a screen. */
#define FEWEST_SERVICES 8U

/* Render, leaving out more and more until the report fits on a screen. */
static int render_to_fit(struct report *report, struct rendered *ret_rendered)
{
	int r = render_all(report, ret_rendered);

	while (!r && !report->page.verbose && lines_of_all(ret_rendered) > LINES) {
		if (report->page.tight < TIGHT_MOST)
			report->page.tight++;
		else if (report->services > FEWEST_SERVICES)
			report->services = report->services > LINES ? LINES : report->services - 1;
		else
			break;
		r = render_all(report, ret_rendered);
	}
	return r;
}

static int render_distribution(struct report *report, struct rendered *rendered)
{
	unsigned int lines = lines_of_all(rendered);

	report->rows = rows_beside(report, lines);
	report->followed = *rendered->resources;
	report->airy = lines + report->rows + 2 <= LINES;
	return render(report, print_distribution, &rendered->drawn);
}

int report_text(const struct run *run, const struct report_options *options, FILE *file)
{
	struct report report = {
		.page = page_of(options, NULL),
		.run = run,
		.options = options,
		.driven = report_driven_service(run),
		.services = SIZE_MAX,
		.compared = report_compared(run),
	};
	__attribute__((cleanup(rendered_done))) struct rendered rendered = {0};
	int r = render_to_fit(&report, &rendered);

	if (!r)
		r = render_distribution(&report, &rendered);
	for (size_t i = 0; i < 4 && !r; i++)
		r = put((char *const[]){rendered.head, rendered.drawn, rendered.resources,
					rendered.others}[i],
			options, file);
	return r || ferror(file) ? -EIO : 0;
}
