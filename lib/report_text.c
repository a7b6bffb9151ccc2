/* SPDX-License-Identifier: MIT */
/* The report for people: which parts of it a document has, and in what order they stand. */
#include "sojourn/report.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "report_parts.h"
#include "sojourn/units.h"

#define DEFAULT_WIDTH 100

void report_options_for(FILE *file, struct report_options *ret_options)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(fileno(file));
	struct winsize size = {0};

	if (terminal)
		ioctl(fileno(file), TIOCGWINSZ, &size);
	*ret_options = (struct report_options){
		.colour = terminal && !(no_colour && *no_colour) && term && strcmp(term, "dumb"),
		.width = size.ws_col,
	};
}

static void print_document(const struct page *page, const struct run *run)
{
	struct items items = items_begin(page, "", 0);
	char text[SHORT_TEXT];

	if (run->tool)
		items_add(&items, "%s", run->tool);
	if (run->host)
		items_add(&items, "host %s", run->host);
	if (run->kernel)
		items_add(&items, "kernel %s", run->kernel);
	if (run->started_at)
		items_add(&items, "%s", run->started_at);
	if (run->duration_ns)
		items_add(&items, "over %s", page_time((double)run->duration_ns, text));
	items_end(&items);
}

/* The port in a URL, its scheme's own if it names none; 0 if it cannot be told. */
static uint16_t target_port(const char *url)
{
	const char *authority, *end, *colon;
	autofree char *port = NULL;
	uint64_t value;

	authority = url ? strstr(url, "://") : NULL;
	if (!authority)
		return 0;
	authority += 3;
	end = authority + strcspn(authority, "/?#");
	colon = memrchr(authority, ':', (size_t)(end - authority));
	/* A colon inside of brackets is the address's. */
	if (!colon || memchr(colon, ']', (size_t)(end - colon)))
		return !strncmp(url, "https:", 6) ? 443 : 80;
	port = strndup(colon + 1, (size_t)(end - colon - 1));
	if (!port || units_parse_u64(port, 1, UINT16_MAX, &value))
		return 0;
	return (uint16_t)value;
}

/* The service with most exchanges, of those on @port unless that is 0; NULL if none has any. */
static const struct run_service *busiest_service(const struct run *run, uint16_t port)
{
	const struct run_service *busiest = NULL;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (!service->exchanges || (port && service->port != port))
			continue;
		if (!busiest || service->exchanges > busiest->exchanges)
			busiest = service;
	}
	return busiest;
}

/* Of several targets, or of the same port on several hosts, no one service saw all requests. */
static bool is_ambiguous(const struct run *run)
{
	uint16_t port = target_port(run->driver->target);
	size_t found = 0;

	if (run->driver->part_count > 1 && !run->driver->target)
		return true;
	for (size_t i = 0; i < run->service_count; i++)
		found += run->services[i].host && run->services[i].exchanges &&
			 (!port || run->services[i].port == port);
	return found > 1;
}

const struct run_service *report_driven_service(const struct run *run)
{
	const struct run_service *service;

	if (!run->driver || !run->driver->requests || !run->driver->round_trip.count ||
	    is_ambiguous(run))
		return NULL;
	service = busiest_service(run, target_port(run->driver->target));
	return service ? service : busiest_service(run, 0);
}

static void print_breakdown(const struct page *page, const struct run *run,
			    const struct run_service *service)
{
	uint16_t port = target_port(run->driver->target);

	report_identity(page, service, NULL);
	report_tree(page, run, service);
	if (port && port != service->port)
		page_wrap(page, 0,
			  "note: no exchanges were seen at port %u, which the driver was sent to:"
			  " this is the busiest service",
			  port);
	report_beside(page, service);
	report_details(page, service);
	if (run->joined)
		fputc('\n', page->file);
	report_joined(page, run);
}

static void print_sheet(const struct page *page, const struct run *run,
			const struct run_service *service)
{
	report_identity(page, service, service->exchanges ? NULL : "no exchanges");
	if (service->exchanges || service->accepted)
		report_stages(page, service);
	report_state(page, run, service);
	report_details(page, service);
}

/* A document of the driver alone, or one whose services the driver's requests did not reach. */
static void print_driver_first(const struct page *page, const struct run *run)
{
	report_round_trip(page, run->driver);
	if (run->service_count && is_ambiguous(run))
		page_wrap(page, 0,
			  "note: the requests went to several services: the round trip is "
			  "not split");
	if (run->driver->observer_error)
		page_wrap(page, 0, "note: without the observer's part: %s",
			  run->driver->observer_error);
}

static void print_services(const struct page *page, const struct run *run,
			   const struct run_service *driven)
{
	for (size_t i = 0; i < run->service_count; i++) {
		if (&run->services[i] == driven)
			continue;
		fputc('\n', page->file);
		print_sheet(page, run, &run->services[i]);
	}
}

int report_text(const struct run *run, const struct report_options *options, FILE *file)
{
	const struct page page = {
		.file = file,
		.colour = options->colour,
		.width = options->width ? options->width : DEFAULT_WIDTH,
	};
	const struct run_service *driven = report_driven_service(run);

	if (run->driver)
		report_limited(&page, run->driver);
	report_sweep_limited(&page, run);
	print_document(&page, run);
	if (run->driver)
		report_target(&page, run);
	if (run->driver)
		fputc('\n', file);
	if (run->driver)
		report_response_time(&page, run->driver);
	if (run->driver)
		report_print_notes(&page, run->driver);
	if (driven)
		print_breakdown(&page, run, driven);
	else if (run->driver)
		print_driver_first(&page, run);
	if (run->driver) {
		fputc('\n', file);
		report_driver(&page, run);
	}
	report_sweep(&page, run);
	report_findings(&page, run);
	print_services(&page, run, driven);
	if (run->cost) {
		fputc('\n', file);
		report_cost(&page, run);
	}
	return ferror(file) ? -EIO : 0;
}
