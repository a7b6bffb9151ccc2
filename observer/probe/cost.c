// SPDX-License-Identifier: MIT
/*
 * Measures what observing costs; see cost.h. Neighbours: exchanges.c (the load), empty.c (programs that do nothing),
 * spread.c (medians), cost_print.c.
 */
#include "cost.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "empty.h"
#include "exchanges.h"
#include "kernel/loader.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/run.h"
#include "wire/counters.h"

#define WINDOW_NS  (5 * NSEC_PER_MSEC)
#define WARM_NS	   (20 * NSEC_PER_MSEC)
#define RING_BYTES (4U << 20) /* as in `sojourn observe` */

/* Share of the time for measuring exchanges; the rest is for single programs. */
#define PAIRED_SHARE 0.7

/* The mode with nothing attached. All other modes are compared with it. */
#define NOTHING COST_MODES

struct timed {
	uint64_t runs;
	uint64_t run_ns;
};

struct measuring {
	struct loader *loader;
	struct loader *http; /* of COST_HTTP; NULL: not measured */
	struct exchanges *exchanges;
	struct ring_buffer *ring;
	struct empty empties[PLAN_ROWS]; /* of programs[] at the same index */
	struct loader_program programs[PLAN_ROWS];
	bool per_exchange[PLAN_ROWS]; /* likewise */
	size_t program_count;
	unsigned int mode;
	uint64_t watched; /* exchanges that the programs should have counted */
	uint64_t http_watched;
	struct rounds exchange_ns;
	struct rounds both_ns[COST_MODES];
	struct rounds server_ns[COST_MODES];
	struct rounds run_ns[PLAN_ROWS][COST_TIMED_MODES];
	struct rounds sum_ns[COST_TIMED_MODES];
};

/* ---- what is attached ---- */

static struct loader *loader_of(const struct measuring *m, unsigned int mode)
{
	return mode == COST_HTTP ? m->http : m->loader;
}

static void detach_all(struct measuring *m)
{
	if (m->mode == COST_EMPTY) {
		for (size_t i = 0; i < m->program_count; i++)
			empty_detach(&m->empties[i]);
	} else if (m->mode != NOTHING) {
		loader_pause(loader_of(m, m->mode));
	}
	m->mode = NOTHING;
}

static int attach_empties(struct measuring *m)
{
	int r = 0;

	for (size_t i = 0; !r && i < m->program_count; i++)
		r = empty_attach(&m->empties[i]);
	return r;
}

static bool is_ours(unsigned int mode)
{
	return mode != COST_EMPTY && mode != NOTHING;
}

/* Attaching takes the kernel some milliseconds, so our programs stay attached from one of our modes to the next. */
static int set_mode(struct measuring *m, unsigned int mode)
{
	struct loader *loader = loader_of(m, mode);
	bool attached = is_ours(mode) && is_ours(m->mode) && loader == loader_of(m, m->mode);

	if (m->mode == mode)
		return 0;
	if (!attached)
		detach_all(m);
	m->mode = mode;
	if (mode == COST_EMPTY)
		return attach_empties(m);
	if (!is_ours(mode))
		return 0;
	loader_watch(loader, exchanges_port(m->exchanges), mode != COST_FILTERED);
	loader_set_sample_threshold(loader, mode == COST_KEPT ? RUN_SAMPLE_ALL : 0);
	return attached ? 0 : loader_resume(loader);
}

/* Run exchanges in @mode for a window; *@ret_ns is the time of one. Discard the samples that were kept. */
static int window(struct measuring *m, unsigned int mode, double *ret_ns)
{
	uint64_t before = exchanges_count(m->exchanges);
	int r = set_mode(m, mode);

	if (!r)
		r = exchanges_run(m->exchanges, WINDOW_NS, ret_ns);
	if (mode == COST_OBSERVED || mode == COST_KEPT)
		m->watched += exchanges_count(m->exchanges) - before;
	if (mode == COST_HTTP)
		m->http_watched += exchanges_count(m->exchanges) - before;
	if (mode == COST_KEPT)
		(void)ring_buffer__consume(m->ring);
	return r;
}

/* ---- exchanges: modes between two windows with nothing attached ---- */

/*
 * @added_ns: time that each mode adds to an exchange. The client's programs stop at the filter, so the client's end
 * adds half of what both ends add there.
 */
static void add_round(struct measuring *m, const double added_ns[static COST_MODES])
{
	for (unsigned int mode = 0; mode < COST_MODES; mode++) {
		double client_ns = added_ns[mode < COST_OBSERVED ? mode : COST_FILTERED] / 2;

		if (mode == COST_HTTP && !m->http)
			continue;
		rounds_add(&m->both_ns[mode], added_ns[mode]);
		rounds_add(&m->server_ns[mode], added_ns[mode] - client_ns);
	}
}

/* Other programs on our hooks: beside them, entering one more costs less or more. */
#define TRACEPOINT "tp_btf/"

static bool is_on_our_hooks(const struct loader_program *programs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(programs[i].hook, TRACEPOINT, strlen(TRACEPOINT)) &&
		    !strcmp(programs[i].hook + strlen(TRACEPOINT), name))
			return true;
	}
	return false;
}

/* Its tracepoint's name; "": it has another kind of hook, or is gone by now. */
static void read_name(uint32_t id, size_t size, char *ret_name)
{
	autoclose int fd = bpf_link_get_fd_by_id(id);
	struct bpf_link_info info = {
		.raw_tracepoint = {.tp_name = (uintptr_t)ret_name, .tp_name_len = (uint32_t)size}};
	uint32_t length = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) < 0 ||
	    info.type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		ret_name[0] = 0;
}

/*
 * Return how many are attached to the tracepoints of @programs, while none of ours is. -errno: the kernel does not let us
 * look.
 */
static int others_count(const struct loader_program *programs, size_t count)
{
	uint32_t id = 0;
	int others = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		char name[128] = "";

		read_name(id, sizeof(name), name);
		others += is_on_our_hooks(programs, count, name);
	}
	return errno == ENOENT ? others : -errno;
}

/* Called while nothing of ours is attached. */
static void note_others(const struct measuring *m, unsigned int round, struct cost *cost)
{
	int others = others_count(m->programs, m->program_count);

	if (!round || others < cost->others_least)
		cost->others_least = others;
	if (!round || others > cost->others_most)
		cost->others_most = others;
}

/*
 * Measure a window of each of @count modes from @first on, and then one with nothing attached. Each
 * round starts with another mode.
 */
static int windows(struct measuring *m, unsigned int round, unsigned int first, unsigned int count,
		   double *before_ns, double *ret_added_ns)
{
	double taken_ns[COST_MODES] = {}, after_ns = 0;
	int r = 0;

	for (unsigned int i = 0; !r && i < count; i++) {
		unsigned int mode = first + (round + i) % count;

		r = window(m, mode, &taken_ns[mode]);
	}
	if (!r)
		r = window(m, NOTHING, &after_ns);
	for (unsigned int mode = first; mode < first + count; mode++)
		ret_added_ns[mode] = taken_ns[mode] - (*before_ns + after_ns) / 2;
	*before_ns = after_ns;
	return r;
}

/* Compare a mode with the windows before and after it: the machine's drift is in all of them, and cancels out. */
static int paired_round(struct measuring *m, unsigned int round, struct cost *cost)
{
	double added_ns[COST_MODES] = {}, before_ns = 0;
	int r = window(m, NOTHING, &before_ns);

	note_others(m, round, cost);
	if (!r)
		r = windows(m, round, COST_EMPTY, 1, &before_ns, added_ns);
	if (!r)
		r = windows(m, round, COST_FILTERED, COST_KEPT + 1 - COST_FILTERED, &before_ns,
			    added_ns);
	if (!r && m->http)
		r = windows(m, round, COST_HTTP, 1, &before_ns, added_ns);
	if (r < 0)
		return r;
	rounds_add(&m->exchange_ns, before_ns);
	add_round(m, added_ns);
	return 0;
}

/* ---- programs, by the kernel's run statistics ---- */

static int read_timed(struct measuring *m, unsigned int mode, struct timed *ret_timed)
{
	struct loader_program programs[PLAN_ROWS] = {};
	int r = 0;

	if (mode != COST_EMPTY &&
	    loader_programs(m->loader, programs, PLAN_ROWS) != m->program_count)
		return -EIO;
	for (size_t i = 0; !r && i < m->program_count; i++) {
		ret_timed[i] = (struct timed){programs[i].runs, programs[i].run_ns};
		if (mode == COST_EMPTY && m->empties[i].program_fd >= 0)
			r = empty_read(&m->empties[i], &ret_timed[i].runs, &ret_timed[i].run_ns);
	}
	return r;
}

/* Measure each program's runs in a window. */
static int timed_window(struct measuring *m, unsigned int mode, struct timed *ret_timed,
			uint64_t *ret_exchanges)
{
	struct timed before[PLAN_ROWS] = {};
	uint64_t exchanges = exchanges_count(m->exchanges);
	double ns;
	int r = set_mode(m, mode);

	if (!r)
		r = read_timed(m, mode, before);
	if (!r)
		r = window(m, mode, &ns);
	if (!r)
		r = read_timed(m, mode, ret_timed);
	for (size_t i = 0; !r && i < m->program_count; i++) {
		ret_timed[i].runs -= before[i].runs;
		ret_timed[i].run_ns -= before[i].run_ns;
	}
	*ret_exchanges = exchanges_count(m->exchanges) - exchanges;
	return r;
}

static double mean(const struct timed *timed)
{
	return (double)timed->run_ns / (double)timed->runs;
}

/*
 * A program runs for the server's socket once in an exchange. All other runs, for the client's socket and for other
 * sockets of this host, return at the filter. Subtract their cost, that of a filtered run each.
 */
static double observed_run(const struct timed *timed, uint64_t exchanges, double filtered_ns)
{
	double others = (double)(timed->runs - exchanges) * filtered_ns;

	return ((double)timed->run_ns - others) / (double)exchanges;
}

static int timed_round(struct measuring *m, struct cost *cost)
{
	struct timed timed[COST_TIMED_MODES][PLAN_ROWS] = {};
	uint64_t exchanges[COST_TIMED_MODES] = {};
	double sum[COST_TIMED_MODES] = {};
	int r = 0;

	for (unsigned int mode = 0; !r && mode < COST_TIMED_MODES; mode++)
		r = timed_window(m, mode, timed[mode], &exchanges[mode]);
	for (size_t i = 0; !r && i < m->program_count; i++) {
		const struct timed *observed = &timed[COST_OBSERVED][i];
		double ns[COST_TIMED_MODES];

		if (!m->per_exchange[i] || observed->runs < exchanges[COST_OBSERVED] ||
		    !timed[COST_EMPTY][i].runs || !timed[COST_FILTERED][i].runs)
			continue;
		ns[COST_EMPTY] = mean(&timed[COST_EMPTY][i]);
		ns[COST_FILTERED] = mean(&timed[COST_FILTERED][i]);
		ns[COST_OBSERVED] =
			observed_run(observed, exchanges[COST_OBSERVED], ns[COST_FILTERED]);
		cost->programs[i].runs += observed->runs;
		for (unsigned int mode = 0; mode < COST_TIMED_MODES; mode++) {
			rounds_add(&m->run_ns[i][mode], ns[mode]);
			sum[mode] += ns[mode];
		}
	}
	for (unsigned int mode = 0; !r && mode < COST_TIMED_MODES; mode++)
		rounds_add(&m->sum_ns[mode], sum[mode]);
	return r;
}

/* ---- begin and end ---- */

static int discard(void *context, void *data, size_t size)
{
	(void)context, (void)data, (void)size;
	return 0;
}

/* Set up the configuration of `sojourn observe --port`. */
static int fill_config(const struct plan *plan, uint64_t quiet_ns,
		       struct observer_config *ret_config, struct service_key *ret_key)
{
	struct timespec tick = {};
	struct stat netns, pidns;

	if (stat("/proc/self/ns/net", &netns) < 0 || stat("/proc/self/ns/pid", &pidns) < 0)
		return -errno;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	*ret_key = (struct service_key){.netns = (uint32_t)netns.st_ino, .protocol = IPPROTO_TCP};
	*ret_config = (struct observer_config){
		.max_services = 1,
		.netns = ret_key->netns,
		.accept_source = plan_accept_source(plan),
		.quiet_ns = quiet_ns,
		.http = !plan_missing_http(plan),
		.streams = !plan_missing_http(plan),
		.tick_ns = clock_timespec_ns(&tick),
		.listener_depths = 1,
		.depth_at_accept = plan_depth(plan) == PLAN_DEPTH_ACCEPTED,
		.ring_bytes = RING_BYTES,
		.pidns_dev = pidns.st_dev,
		.pidns_ino = pidns.st_ino,
	};
	return 0;
}

/*
 * Return whether @program answers a question that every exchange raises. Other programs run for
 * other activity on this host.
 */
static bool runs_per_exchange(const struct plan *plan, const char *program)
{
	const enum question questions[] = {QUESTION_ARRIVAL, QUESTION_READ, QUESTION_WRITE};

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		const struct plan_row *row = plan_chosen(plan, questions[i]);

		for (size_t k = 0; row && plan_program(row, k); k++) {
			if (!strcmp(plan_program(row, k), program))
				return true;
		}
	}
	return false;
}

/* A hook that no request passes has no empty program: it costs a request nothing. */
static int open_empties(struct measuring *m, const struct plan *plan)
{
	int r = 0;

	m->program_count = loader_programs(m->loader, m->programs, PLAN_ROWS);
	for (size_t i = 0; i < PLAN_ROWS; i++)
		m->empties[i] = (struct empty){-1, -1};
	for (size_t i = 0; i < m->program_count; i++)
		m->per_exchange[i] = runs_per_exchange(plan, m->programs[i].name);
	for (size_t i = 0; (!r || r == -EOPNOTSUPP) && i < m->program_count; i++)
		r = empty_open(m->programs[i].hook, &m->empties[i]);
	return r == -EOPNOTSUPP ? 0 : r;
}

static int load(const struct measuring *m, const struct plan *plan, uint64_t quiet_ns,
		struct loader **ret_loader)
{
	struct loader_options options = {.netns_fd = -1, .cgroup_fd = -1};
	struct service_key key;
	int r = fill_config(plan, quiet_ns, &options.config, &key);

	key.port = exchanges_port(m->exchanges);
	if (!r)
		r = loader_open(plan, &options, ret_loader);
	return r ?: loader_add_service(*ret_loader, &key);
}

static int load_default(struct measuring *m, const struct plan *plan, uint64_t quiet_ns)
{
	int r = load(m, plan, quiet_ns, &m->loader);

	if (!r)
		r = open_empties(m, plan);
	if (r < 0)
		return r;
	m->ring = ring_buffer__new(loader_ring_fd(m->loader), discard, NULL, NULL);
	return m->ring ? loader_attach(m->loader) : -errno;
}

/* Without these programs the other figures are still known. */
static void load_http(struct measuring *m, const struct plan *plan, uint64_t quiet_ns)
{
	int r = plan_missing_http(plan) ? -EOPNOTSUPP : load(m, plan, quiet_ns, &m->http);

	if (!r)
		r = loader_attach(m->http);
	if (r < 0) {
		loader_close(m->http);
		m->http = NULL;
	}
}

/* All programs see the connection begin. */
static int begin(struct measuring *m, const struct plan *plan, const struct plan *http,
		 uint64_t quiet_ns)
{
	double ns;
	int r = exchanges_open(&m->exchanges);

	if (!r)
		r = load_default(m, plan, quiet_ns);
	if (!r && http)
		load_http(m, http, quiet_ns);
	m->mode = COST_OBSERVED;
	if (!r)
		r = exchanges_connect(m->exchanges);
	if (!r)
		r = exchanges_run(m->exchanges, WARM_NS, &ns);
	if (m->http)
		loader_pause(m->http);
	if (!r)
		m->watched = m->http_watched = exchanges_count(m->exchanges);
	return r;
}

static void end(struct measuring *m)
{
	for (size_t i = 0; i < m->program_count; i++)
		empty_close(&m->empties[i]);
	ring_buffer__free(m->ring);
	loader_close(m->loader);
	loader_close(m->http);
	exchanges_close(m->exchanges);
	free(m);
}

/* ---- the whole ---- */

static int measure_exchanges(struct measuring *m, uint64_t until_ns, struct cost *cost)
{
	int r = 0;

	for (unsigned int round = 0; !r && round < SPREAD_ROUNDS; round++) {
		if (clock_now_ns() >= until_ns && round >= SPREAD_LEAST)
			break;
		r = paired_round(m, round, cost);
	}
	return r;
}

/* Without the right to run statistics the other figures are still known. */
static int measure_programs(struct measuring *m, uint64_t until_ns, struct cost *cost)
{
	autoclose int statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	int r = 0;

	cost->timed_error = statistics < 0 ? errno : 0;
	for (unsigned int round = 0; statistics >= 0 && !r && round < SPREAD_ROUNDS; round++) {
		if (clock_now_ns() >= until_ns && round >= SPREAD_LEAST)
			break;
		r = timed_round(m, cost);
	}
	return r;
}

/* Check that the programs saw the exchanges: otherwise their cost would be missing. */
static int check_seen(const struct loader *loader, uint64_t watched)
{
	uint64_t seen = 0;

	for (uint32_t copy = 0; copy < loader_copies(loader); copy++)
		seen += loader_slot(loader, copy, 0)->counters[COUNTER_EXCHANGES];
	return seen == watched ? 0 : -ENODATA;
}

static void conclude_programs(struct measuring *m, struct cost *cost)
{
	size_t count = 0;

	for (size_t i = 0; i < m->program_count; i++) {
		struct cost_program program = {.runs = cost->programs[i].runs};

		if (!program.runs)
			continue;
		memcpy(program.name, m->programs[i].name, sizeof(program.name));
		memcpy(program.hook, m->programs[i].hook, sizeof(program.hook));
		for (unsigned int mode = 0; mode < COST_TIMED_MODES; mode++)
			program.run_ns[mode] = spread_of(&m->run_ns[i][mode]);
		cost->programs[count++] = program;
	}
	cost->program_count = count;
}

static void conclude(struct measuring *m, struct cost *cost)
{
	cost->exchanges = exchanges_count(m->exchanges);
	cost->exchange_ns = spread_of(&m->exchange_ns);
	for (unsigned int mode = 0; mode < COST_MODES; mode++) {
		cost->both_ns[mode] = spread_of(&m->both_ns[mode]);
		cost->server_ns[mode] = spread_of(&m->server_ns[mode]);
	}
	conclude_programs(m, cost);
	for (unsigned int mode = 0; mode < COST_TIMED_MODES; mode++)
		cost->sum_ns[mode] = spread_of(&m->sum_ns[mode]);
	cost->ended_ns = clock_now_ns();
}

int cost_measure(const struct plan *plan, const struct plan *http, uint64_t quiet_ns,
		 uint64_t budget_ns, struct cost *ret_cost)
{
	struct measuring *m = calloc(1, sizeof(*m));
	uint64_t now_ns = clock_now_ns();
	int r;

	if (!m)
		return -ENOMEM;
	*ret_cost = (struct cost){.begun_ns = now_ns};
	r = begin(m, plan, http, quiet_ns);
	if (!r)
		r = measure_exchanges(m, now_ns + (uint64_t)((double)budget_ns * PAIRED_SHARE),
				      ret_cost);
	if (!r)
		r = measure_programs(m, now_ns + budget_ns, ret_cost);
	if (!r)
		r = check_seen(m->loader, m->watched);
	if (!r && m->http)
		r = check_seen(m->http, m->http_watched);
	if (!r)
		conclude(m, ret_cost);
	end(m);
	return r;
}

static double share(double ns, uint64_t requests_per_s)
{
	return 100 * ns * (double)requests_per_s / (double)NSEC_PER_SEC;
}

struct spread cost_share(const struct cost *cost, enum cost_mode mode, uint64_t requests_per_s)
{
	const struct spread *ns = &cost->server_ns[mode];

	return (struct spread){ns->rounds, share(ns->median, requests_per_s),
			       share(ns->low, requests_per_s), share(ns->high, requests_per_s)};
}
