/* SPDX-License-Identifier: MIT */
/* What was running out on the observer's host, beside what the driver counted of it. */
#include <string.h>

#include "report_parts.h"
#include "sojourn/finding.h"

#define INDENT 12

static void print_text(const struct page *page, const char *label, const char *text)
{
	if (!text)
		return;
	page_left(page, INDENT, "  %s", label);
	page_wrap(page, INDENT, "%s", text);
}

static void print_owners(const struct page *page, const struct run_finding *finding)
{
	struct items items;

	if (!finding->owner_count)
		return;
	items = items_begin(page, "  who", INDENT);
	for (size_t i = 0; i < finding->owner_count; i++) {
		const struct run_owner *owner = &finding->owners[i];
		char sockets[48] = "", count[SHORT_TEXT];

		if (owner->sockets.known)
			snprintf(sockets, sizeof(sockets), ", %s sockets",
				 page_count(owner->sockets.value, count));
		items_add(&items, "%s, pid %u%s%s%s", owner->comm, owner->pid,
			  owner->unit[0] ? ", in " : "", owner->unit, sockets);
	}
	items_end(&items);
}

static void print_evidence(const struct page *page, const struct run_finding *finding)
{
	struct items items;

	if (!finding->evidence || !*finding->evidence)
		return;
	items = items_begin(page, "  evidence", INDENT);
	for (char **text = finding->evidence; *text; text++)
		items_add(&items, "%s", *text);
	items_end(&items);
}

/* Which of the driver's errors are the client's side of a resource's end. */
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
	char count[SHORT_TEXT], words[SHORT_TEXT];

	for (size_t i = 0; run->driver && i < ARRAY_SIZE(met); i++) {
		uint64_t errors = run->driver->errors[met[i].error];

		if (!errors || strcmp(met[i].resource, finding->resource))
			continue;
		page_left(page, INDENT, "  met as");
		page_wrap(page, INDENT, "the driver's %s errors '%s': %s",
			  page_count(errors, count),
			  page_words(run_error_names[met[i].error], words),
			  run_error_help[met[i].error]);
	}
}

/* In one line, however long: it is to be copied. */
static void print_command(const struct page *page, const struct run_finding *finding)
{
	if (!finding->command)
		return;
	page_left(page, INDENT, "  do");
	page_left(page, 0, "%s", finding->command);
	fputc('\n', page->file);
}

static void print_finding(const struct page *page, const struct run *run,
			  const struct run_finding *finding)
{
	bool critical = !strcmp(finding->severity, "critical");

	page_style(page, critical ? STYLE_HOT : STYLE_BOLD);
	page_left(page, 0, "%s  %s  %s%s%s", critical ? "CRITICAL" : "WARNING ", finding->id,
		  finding->object, finding->host ? " on " : "", finding->host ? finding->host : "");
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
	print_text(page, "what", finding->what);
	print_met(page, run, finding);
	print_owners(page, finding);
	print_evidence(page, finding);
	print_text(page, "outlook", finding->outlook);
	print_command(page, finding);
	print_text(page, finding->command ? "or change" : "change", finding->change);
	print_text(page, "risk", finding->risk);
	print_text(page, "more", finding->link);
}

void report_findings(const struct page *page, const struct run *run)
{
	if (!run->not_seen && !run->finding_count)
		return;
	fputc('\n', page->file);
	if (!run->finding_count)
		page_wrap(page, 0, "nothing was running out on %s",
			  run->host ? run->host : "the observer's host");
	for (size_t i = 0; i < run->finding_count; i++)
		print_finding(page, run, &run->findings[i]);
	for (char **note = run->not_seen; note && *note; note++)
		page_wrap(page, 0, "not seen: %s", *note);
}
