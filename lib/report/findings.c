// SPDX-License-Identifier: MIT
/* Resources that were running out on the observer's host, next to the driver's related errors. */
#include <string.h>

#include "parts.h"
#include "sojourn/finding.h"

#define INDENT	12
#define FULLEST 8

static void print_text(const struct page *page, const char *label, const char *text)
{
	if (!text)
		return;
	page_left(page, INDENT, "  %s", label);
	page_wrap(page, INDENT, "%s", text);
}

static void print_owners(const struct page *page, const struct run_finding *finding)
{
	autoitems struct items items = items_begin(page, "  who", INDENT);

	for (size_t i = 0; i < finding->owner_count; i++) {
		const struct run_owner *owner = &finding->owners[i];
		char sockets[48] = "";

		if (owner->sockets.known)
			snprintf(sockets, sizeof(sockets), ", %s socket%s",
				 as_count(owner->sockets.value),
				 owner->sockets.value == 1 ? "" : "s");
		items_add(&items, "%s, pid %u%s%s%s%s%s", owner->comm, owner->pid,
			  owner->unit[0] ? ", in " : "", owner->unit, sockets,
			  owner->did[0] ? ": " : "", owner->did);
	}
}

bool report_hangs(const struct run *run, const struct run_service *service,
		  struct report_verdict *ret_verdict)
{
	const struct run_finding *finding = NULL;

	for (size_t i = 0; i < run->finding_count && !finding; i++)
		if (!strcmp(run->findings[i].id, "requests-hang") &&
		    !strcmp(run->findings[i].severity, "critical") &&
		    run->findings[i].port == service->port &&
		    run->findings[i].netns == service->netns)
			finding = &run->findings[i];
	if (!finding)
		return false;
	snprintf(ret_verdict->text, sizeof(ret_verdict->text),
		 "at the end %s answered nothing: %s requests waited, the oldest for %s%s%s",
		 finding->object, as_count(finding->used.value),
		 as_time((double)service->open.oldest_ns.value),
		 finding->owner_count && finding->owners[0].did[0] ? "; the process is " : "",
		 finding->owner_count ? finding->owners[0].did : "");
	return true;
}

static void print_evidence(const struct page *page, const struct run_finding *finding)
{
	autoitems struct items items = items_begin(page, "  evidence", INDENT);

	for (char **text = finding->evidence; text && *text; text++)
		items_add(&items, "%s", *text);
}

/* Errors of the driver that an exhausted resource on the server's host causes. */
static const struct {
	const char *resource;
	enum run_error error;
} met[] = {
	{"ephemeral_ports", RUN_ERROR_ADDRESS_UNAVAILABLE},
	{"port_failures", RUN_ERROR_ADDRESS_UNAVAILABLE},
	{"descriptors", RUN_ERROR_TOO_MANY_FILES},
	{"files", RUN_ERROR_TOO_MANY_FILES},
	{"accept_queue", RUN_ERROR_CONNECT_TIMEOUT},
	{"syn_queue", RUN_ERROR_CONNECT_TIMEOUT},
};

static void print_met(const struct page *page, const struct run *run,
		      const struct run_finding *finding)
{
	for (size_t i = 0; run->driver && i < ARRAY_SIZE(met); i++) {
		uint64_t errors = run->driver->errors[met[i].error];

		if (!errors || strcmp(met[i].resource, finding->resource))
			continue;
		page_left(page, INDENT, "  met as");
		page_wrap(page, INDENT, "the driver's %s errors '%s': %s", as_count(errors),
			  as_words(run_error_names[met[i].error]), run_error_help[met[i].error]);
	}
}

static void print_title(const struct page *page, const struct run_finding *finding)
{
	bool critical = !strcmp(finding->severity, "critical");
	bool notice = !strcmp(finding->severity, "notice");

	page_style(page, critical ? STYLE_HOT : notice ? STYLE_PLAIN : STYLE_BOLD);
	page_left(page, 0, "%s  %s  %s%s%s",
		  critical ? "CRITICAL"
		  : notice ? "NOTICE  "
			   : "WARNING ",
		  finding->id, finding->object, finding->host ? " on " : "",
		  finding->host ? finding->host : "");
	page_style(page, STYLE_PLAIN);
	if (finding->netns_name[0])
		page_left(page, 0, "  (network namespace %s)", finding->netns_name);
	fputc('\n', page->file);
}

/* On one line of any length, to be copied. */
static void print_command(const struct page *page, const char *command)
{
	page_left(page, INDENT, "  do");
	page_left(page, 0, "%s", command);
	fputc('\n', page->file);
}

static void print_remedy(const struct page *page, const struct run_finding *finding)
{
	if (finding->command)
		print_command(page, finding->command);
	else
		print_text(page, "change", finding->change);
}

static void print_finding(const struct page *page, const struct run *run,
			  const struct run_finding *finding)
{
	print_title(page, finding);
	if (page->tight) {
		print_met(page, run, finding);
		if (finding->owner_count && finding->owners[0].did[0])
			print_owners(page, finding);
		print_remedy(page, finding);
		return;
	}
	print_text(page, "what", finding->what);
	print_met(page, run, finding);
	print_owners(page, finding);
	if (page->verbose)
		print_evidence(page, finding);
	print_text(page, "outlook", finding->outlook);
	if (finding->command)
		print_command(page, finding->command);
	print_text(page, finding->command ? "or change" : "change", finding->change);
	if (page->verbose)
		print_text(page, "risk", finding->risk);
	print_text(page, "more", finding->link);
}

/* ---- of the doctor: the fullest ---- */

static double share(const struct run_finding *resource)
{
	return resource->used.known && resource->capacity.known && resource->capacity.value
		       ? (double)resource->used.value / (double)resource->capacity.value
		       : 0;
}

static const struct run_finding *next_fullest(const struct run *run, const struct run_finding *last)
{
	const struct run_finding *found = NULL;

	for (size_t i = 0; i < run->resource_count; i++) {
		const struct run_finding *r = &run->resources[i];
		bool later =
			!last || share(r) < share(last) || (share(r) == share(last) && r > last);

		if (later && share(r) > 0 && (!found || share(r) > share(found)))
			found = r;
	}
	return found;
}

static void print_fullest(const struct page *page, const struct run *run)
{
	const struct run_finding *r = NULL;

	for (int i = 0; i < FULLEST && (r = next_fullest(run, r)); i++) {
		if (!i)
			fprintf(page->file, "\n%-16s %14s %14s\n", "fullest", "used", "of");
		page_left(page, 16, "%s", r->resource);
		fprintf(page->file, " %14s %14s %7s  ", as_count(r->used.value),
			as_count(r->capacity.value), as_share(share(r) * 100));
		page_left(page, 0, "%s", r->object);
		fputc('\n', page->file);
	}
}

void report_not_seen(const struct page *page, const struct run *run)
{
	for (char **note = run->not_seen; note && *note; note++)
		page_wrap(page, 0, "not seen: %s", *note);
}

/* Where there is little room, the first ones, which are the worst. */
static const size_t most_findings[] = {[TIGHT_NOT] = SIZE_MAX, [TIGHT_SHORT] = 2, [TIGHT_MOST] = 1};

void report_findings(const struct page *page, const struct run *run)
{
	size_t most = most_findings[page->tight];
	size_t shown = run->finding_count > most ? most : run->finding_count;

	if (!run->finding_count && !(run->not_seen && page->verbose))
		return;
	fputc('\n', page->file);
	if (!run->finding_count)
		page_wrap(page, 0, "nothing was running out on %s",
			  run->host ? run->host : "the observer's host");
	for (size_t i = 0; i < shown; i++)
		print_finding(page, run, &run->findings[i]);
	if (shown < run->finding_count)
		page_wrap(page, 0, "  and %zu more with -v", run->finding_count - shown);
	if (page->verbose)
		print_fullest(page, run);
}
