// SPDX-License-Identifier: MIT
/* Adds up the members' latest documents for people; see view.h. */
#include "view.h"

#include "sojourn/clock.h"

#define TICK_MS 1000U

static void add_document(const struct run_driver *driver, struct stats *sum)
{
	sum->requests += driver->requests;
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		sum->errors[i] += driver->errors[i];
	histogram_add(&sum->round_trip, &driver->round_trip);
	histogram_add(&sum->response_time, &driver->response_time);
}

/*
 * Add up the members' latest documents. Return when the first member began to measure, by the
 * coordinator's clock; 0: there is no document yet.
 */
static uint64_t add_documents(struct fleet_view *view)
{
	struct progress *progress = &view->progress;
	uint64_t first_ns = 0;

	progress->now = (struct stats){0};
	for (uint32_t level = 0; level < FLEET_SUM_LEVELS; level++)
		if (view->sum->levels[level])
			add_document(view->sum->levels[level]->driver, &progress->now);
	for (uint32_t i = 0; i < view->count; i++) {
		struct member *member = &view->members[i];
		const struct run *run = member_read(member);
		uint64_t begin_ns = member_begin_ns(member);

		view->between(view->user);
		if (begin_ns && (!first_ns || begin_ns < first_ns))
			first_ns = begin_ns;
		if (run)
			add_document(run->driver, &progress->now);
		if (i < progress->part_count)
			progress->parts[i].now =
				run ? run->driver->requests : member->result.requests;
	}
	return first_ns;
}

/*
 * The phase began before its first documents arrived, so the time before them must not count in the
 * next rate.
 */
static void begin_measured(struct fleet_view *view, uint64_t begin_ns)
{
	const struct load_settings *load = view->load;
	struct progress *progress = &view->progress;
	uint64_t wall_ns = clock_wall_ns();

	view->measured = true;
	progress_begin_phase(progress, load->duration_ns, load->requests);
	progress->begin_ns -= wall_ns > begin_ns ? wall_ns - begin_ns : 0;
	progress->last = progress->now;
	for (uint32_t i = 0; i < progress->part_count; i++)
		progress->parts[i].last = progress->parts[i].now;
}

static void on_tick(uv_timer_t *timer)
{
	struct fleet_view *view = timer->data;
	uint64_t begin_ns = add_documents(view);

	if (view->measured)
		progress_update(&view->progress);
	else if (begin_ns)
		begin_measured(view, begin_ns);
	else
		progress_warmup(&view->progress);
}

/*
 * Tick halfway between the times at which members report, so that each second has one document of
 * each.
 */
void fleet_view_start(struct fleet_view *view, uint64_t at_ns, uint64_t warmup_ns)
{
	uint64_t wall_ns = clock_wall_ns();
	uint64_t until_ns = at_ns > wall_ns ? at_ns - wall_ns : 0;

	if (!progress_is_shown(&view->progress))
		return;
	progress_begin_phase(&view->progress, warmup_ns, 0);
	uv_timer_start(&view->tick, on_tick,
		       (until_ns + warmup_ns) / NSEC_PER_MSEC % TICK_MS + TICK_MS / 2, TICK_MS);
}

void fleet_view_stop(struct fleet_view *view)
{
	uv_timer_stop(&view->tick);
}

void fleet_view_open(struct fleet_view *view, const struct run_settings *run, const char *what)
{
	const struct progress_settings settings = {
		.file = stderr,
		.quiet = run->quiet,
		.line = run->no_tui,
		.what = what,
	};
	struct progress *progress = &view->progress;

	view->tick.data = view;
	view->measured = false;
	progress_open(progress, &settings);
	for (uint32_t i = 0; i < view->parts && i < PROGRESS_PARTS_MAX; i++)
		progress->parts[progress->part_count++].name = view->members[i].name;
}

void fleet_view_close(struct fleet_view *view)
{
	progress_close(&view->progress);
}
