// SPDX-License-Identifier: MIT
/*
 * Loading, attaching and the maps' memory; see loader.h. model/model.c interprets the numbers. Neighbours: skeleton.c
 * (the object before it is loaded), rehearse.c.
 */
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "maps.h"
#include "read_clock.h"
#include "skeleton.h"
#include "kernel/running/beside.h"
#include "kernel/running/services.h"
#include "kernel/running/streams.h"
#include "kernel/running/visits.h"
#include "kernel/tables/commands.h"
#include "kernel/tables/route.h"
#include "kernel/tls/clear.h"
#include "sojourn/clock.h"

enum {
	SLOTS,
	SPLITS,
	TRANSMITS,
	STATUSES,
	ROUTES,
	PATHS,
	COMMANDS,
	UNNAMED,
	COMMAND_PLACES,
	GAUGES,
	LISTENERS,
	OPENS,
	SPANS,
	WINDOWS,
	PLACES,
	MEMORIES,
};

struct loader {
	struct sojourn_bpf *skel;
	int statistics_fd;
	int cgroup_fd; /* the caller's */
	struct services services;
	const char *const *routes;	/* the caller's */
	uint8_t rows[ROUTES_MOST];	/* of each in the kernel's counts */
	const uint64_t *command_places; /* [id]: the row of that command */
	struct service_gauges *gauges;
	const struct listener_gauge *listeners;
	struct service_open *opens;
	struct port_place *places;
	struct kernel_memory memories[MEMORIES];
	struct visits visits;
	struct clear_probes probes; /* with --tls */
	bool probing_ended;
	void (*streams)(int error); /* the caller's; NULL: there is nothing more to say */
	struct service_key *keys;   /* room for those of all services */
	size_t key_count;	    /* of these, at the last visit */
};

/* ---- opening ---- */

static void choose(struct sojourn_bpf *skel, const struct plan *plan)
{
	bool beside = plan_beside(plan);

	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (!row->chosen && !(beside && row->beside))
			continue;
		for (size_t k = 0; plan_program(row, k); k++)
			loader_skeleton_choose(skel, plan_program(row, k));
	}
}

static int map_memories(struct loader *loader)
{
	const struct observer_config *config = loader_config(loader);
	const struct sojourn_bpf *skel = loader->skel;
	struct services *services = &loader->services;
	const struct {
		const struct bpf_map *map;
		void *pointer; /* address of the pointer to the memory; stays NULL if not wanted */
		bool wanted;
	} rows[MEMORIES] = {
		[SLOTS] = {skel->maps.slots, &services->slots, true},
		[SPLITS] = {skel->maps.splits, &services->splits, config->cpu},
		[TRANSMITS] = {skel->maps.transmits, &services->transmits, config->transmit_below},
		[STATUSES] = {skel->maps.statuses, &services->statuses, config->http},
		[ROUTES] = {skel->maps.route_rows, &services->routes, config->route_rows},
		[PATHS] = {skel->maps.route_paths, &services->paths, config->propose},
		[COMMANDS] = {skel->maps.command_rows, &services->commands, config->command_rows},
		[UNNAMED] = {skel->maps.commands_without, &services->unnamed, config->command_rows},
		[COMMAND_PLACES] = {skel->maps.command_rows_of, &loader->command_places,
				    config->command_rows},
		[GAUGES] = {skel->maps.gauges, &loader->gauges, true},
		[LISTENERS] = {skel->maps.listeners, &loader->listeners, true},
		[OPENS] = {skel->maps.opens, &loader->opens, true},
		[SPANS] = {skel->maps.spans, &services->spans, true},
		[WINDOWS] = {skel->maps.windows, &services->windows, config->streams},
		[PLACES] = {skel->maps.port_places, &loader->places, true},
	};
	int r = 0;

	for (size_t i = 0; !r && i < MEMORIES; i++) {
		if (!rows[i].wanted)
			continue;
		r = kernel_map_memory(rows[i].map, &loader->memories[i]);
		memcpy(rows[i].pointer, &loader->memories[i].at, sizeof(void *));
	}
	return r;
}

static int set_target(struct loader *loader, int cgroup_fd)
{
	uint32_t first = 0;

	return bpf_map_update_elem(bpf_map__fd(loader->skel->maps.target_cgroup), &first,
				   &cgroup_fd, BPF_ANY)
		       ? -errno
		       : 0;
}

static int fill_routes(struct loader *loader)
{
	struct kernel_memory places = {};
	int r = kernel_map_memory(loader->skel->maps.route_places, &places);

	if (r < 0)
		return r;
	routes_fill(places.at, loader->routes, loader->skel->rodata->config.route_rows - 1,
		    loader->rows);
	munmap(places.at, places.bytes);
	return 0;
}

static int loader_init(struct loader *loader, const struct plan *plan,
		       const struct loader_options *options)
{
	int r = loader_skeleton_open(&options->config, &loader->skel);

	if (r < 0)
		return r;
	choose(loader->skel, plan);
	beside_hold_back(loader->skel);
	r = sojourn_bpf__load(loader->skel);
	r = r ? r : read_clock_ask(loader->skel);
	if (r < 0)
		return r;
	r = visits_open(&loader->visits, options->netns_fd, options->config.netns,
			options->config.all_netns);
	if (r < 0)
		return r;
	if (options->run_statistics)
		loader->statistics_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (options->run_statistics && loader->statistics_fd < 0)
		return -errno;
	loader->cgroup_fd = options->cgroup_fd;
	loader->keys = calloc(options->config.max_services, sizeof(*loader->keys));
	r = loader->keys ? map_memories(loader) : -ENOMEM;
	if (!r && options->config.cgroup)
		r = set_target(loader, options->target_fd);
	loader->routes = options->routes;
	loader->streams = options->streams;
	if (!r && options->config.route_rows)
		r = fill_routes(loader);
	if (!r && options->config.command_rows)
		r = commands_fill(loader->skel);
	return r < 0 ? r : services_open(&loader->services, loader->skel);
}

int loader_open(const struct plan *plan, const struct loader_options *options,
		struct loader **ret_loader)
{
	CLEANUP(cleanup_loader_close) struct loader *loader = calloc(1, sizeof(*loader));
	int r;

	if (!loader)
		return -ENOMEM;
	loader->visits.fd = loader->visits.own_fd = loader->statistics_fd = -1;
	loader->cgroup_fd = -1;
	loader->services.fence_fd = loader->services.fence_inner_fd = -1;
	r = loader_init(loader, plan, options);
	if (r < 0)
		return r;
	*ret_loader = TAKE_PTR(loader);
	return 0;
}

/* Otherwise sockets would continue to make timestamps for other programs of their cgroup. */
static void end_stamps(struct loader *loader)
{
	if (!loader->skel || !loader->skel->links.transmit_stamps)
		return;
	bpf_link__destroy(loader->skel->links.transmit_stamps);
	loader->skel->links.transmit_stamps = NULL;
	loader->skel->bss->transmit_leaving = 1;
	loader_visit_sockets(loader, false);
}

void loader_close(struct loader *loader)
{
	if (!loader)
		return;
	end_stamps(loader);
	clear_detach(&loader->probes);
	for (size_t i = 0; i < MEMORIES; i++)
		if (loader->memories[i].at)
			munmap(loader->memories[i].at, loader->memories[i].bytes);
	cleanup_close(&loader->statistics_fd);
	visits_close(&loader->visits);
	free(loader->keys);
	services_close(&loader->services);
	sojourn_bpf__destroy(loader->skel);
	free(loader);
}

/* ---- attaching ---- */

int loader_add_service(struct loader *loader, const struct service_key *key)
{
	uint32_t kept = loader->skel->rodata->config.slots_kept;
	int r = services_add(&loader->services, key, kept);

	if (!loader->skel->rodata->config.floor && (!r || kept))
		loader_watch(loader, key->port, true);
	return r == -ENOSPC && kept ? 0 : r;
}

void loader_watch(struct loader *loader, uint16_t port, bool watched)
{
	uint64_t bit = 1ULL << (port & 63);

	if (watched)
		loader->skel->bss->observed_ports[port >> 6] |= bit;
	else
		loader->skel->bss->observed_ports[port >> 6] &= ~bit;
}

static int attach_stamps(struct loader *loader)
{
	struct bpf_link *link =
		bpf_program__attach_cgroup(loader->skel->progs.transmit_stamps, loader->cgroup_fd);

	if (!link)
		return -errno;
	loader->skel->links.transmit_stamps = link;
	return 0;
}

/* The iterator's link only makes passes possible: the first one runs when all else is attached. */
int loader_attach(struct loader *loader)
{
	int r = sojourn_bpf__attach(loader->skel);

	if (!r && loader->skel->rodata->config.transmit_stamps)
		r = attach_stamps(loader);
	if (r < 0)
		return r;
	loader->skel->bss->threads_watched = 1;
	return loader_visit_sockets(loader, false);
}

/* A failure is said once. */
void loader_follow_streams(struct loader *loader)
{
	int r;

	if (!beside_is_wanted(loader->skel))
		return;
	r = beside_attach(loader->skel, &loader->services);
	if (loader->streams)
		loader->streams(r);
	loader->streams = NULL;
}

int loader_probe_library(struct loader *loader, int fd, const struct clear_places *places)
{
	if (loader->probing_ended)
		return -ECANCELED;
	return clear_attach(&loader->probes, loader->skel, fd, places);
}

void loader_end_probing(struct loader *loader)
{
	loader->probing_ended = true;
}

void loader_pause(struct loader *loader)
{
	sojourn_bpf__detach(loader->skel);
}

int loader_resume(struct loader *loader)
{
	return sojourn_bpf__attach(loader->skel);
}

/* ---- visiting the sockets ---- */

/*
 * Return whether to visit the namespace. One that was visited and has no service needs no further visit: the programs
 * see its later listeners. If unused listeners get no slots, visit all: only a visit counts these listeners.
 */
static bool is_due(void *context, const struct visit *visit)
{
	const struct loader *loader = context;
	bool due = !loader->visits.all || !visit->met ||
		   loader_services_left(loader) <= loader_config(loader)->slots_kept;

	for (size_t i = 0; i < loader->key_count && !due; i++)
		due = loader->keys[i].port && loader->keys[i].netns == visit->netns.inode;
	return due;
}

int loader_visit_sockets(struct loader *loader, bool flush)
{
	const struct visits_pass pass = {
		.skel = loader->skel,
		.places = loader->places,
		.places_bytes = loader->memories[PLACES].bytes,
		.is_due = is_due,
		.context = loader,
	};
	int r = visits_find(&loader->visits);

	if (r < 0)
		return r;
	loader->key_count = 0;
	if (loader->visits.all)
		loader->key_count =
			loader_services(loader, loader->keys, loader_config(loader)->max_services);
	loader_follow_streams(loader);
	memset(loader->gauges, 0, loader->memories[GAUGES].bytes);
	memset(loader->opens, 0, loader->memories[OPENS].bytes);
	loader->skel->bss->sample_flushing = flush;
	loader->skel->bss->udp_pass++;
	loader->skel->bss->listeners_next = loader->skel->bss->listeners_idle = 0;
	r = visits_run(&loader->visits, &pass);
	if (!r && beside_follows(loader->skel))
		r = streams_add(&loader->services, loader->opens);
	return r;
}

/* ---- reading ---- */

size_t loader_services(const struct loader *loader, struct service_key *ret_keys, size_t size)
{
	int fd = bpf_map__fd(loader->skel->maps.services);
	struct service_key key, *previous = NULL;
	size_t found = 0;

	memset(ret_keys, 0, size * sizeof(*ret_keys));
	for (; !bpf_map_get_next_key(fd, previous, &key); previous = &key) {
		uint32_t number, index;

		if (bpf_map_lookup_elem(fd, &key, &number))
			continue;
		index = service_index(number);
		if (index >= size)
			continue;
		ret_keys[index] = key;
		found = index + 1 > found ? index + 1 : found;
	}
	return found;
}

uint64_t loader_services_dropped(const struct loader *loader)
{
	return loader->skel->bss->services_dropped_count;
}

uint64_t loader_connections_dropped(const struct loader *loader)
{
	return loader->skel->bss->connections_dropped;
}

void loader_dropped(const struct loader *loader,
		    void (*visit)(void *context, const struct service_key *key,
				  uint64_t connections),
		    void *context)
{
	int fd = bpf_map__fd(loader->skel->maps.services_dropped);
	struct service_key key, *previous = NULL;
	uint64_t connections;

	for (; !bpf_map_get_next_key(fd, previous, &key); previous = &key) {
		if (!bpf_map_lookup_elem(fd, &key, &connections))
			visit(context, &key, connections);
	}
}

uint32_t loader_services_left(const struct loader *loader)
{
	return services_left(&loader->services);
}

uint32_t loader_idle_listeners(const struct loader *loader)
{
	uint32_t idle = 0;

	for (size_t i = 0; i < loader->visits.count; i++)
		idle += loader->visits.list[i].idle;
	return idle;
}

bool loader_visited(const struct loader *loader, uint32_t netns)
{
	const struct visit *visit = visits_of(&loader->visits, netns);

	return visit && visit->met;
}

bool loader_gone(const struct loader *loader, uint32_t netns)
{
	return loader->visits.all && !visits_of(&loader->visits, netns);
}

const struct run_namespaces *loader_namespaces(const struct loader *loader)
{
	return &loader->visits.told;
}

uint32_t loader_service_number(const struct loader *loader, uint32_t service)
{
	return services_number(&loader->services, service);
}

int loader_reclaim(struct loader *loader, const struct service_key *keys, const uint32_t *services,
		   size_t count, void (*last)(void *context, uint32_t service), void *context)
{
	return services_reclaim(&loader->services, keys, services, count, last, context);
}

/* Return an element of an array that has one for each service in each copy; NULL if there is no array. */
#define COPY_AT(loader, array, copy, service)                                             \
	((loader)->services.array                                                         \
		 ? &(loader)->services                                                    \
			    .array[(size_t)(copy) * loader_config(loader)->max_services + \
				   (service)]                                             \
		 : NULL)

const struct service_slot *loader_slot(const struct loader *loader, uint32_t copy, uint32_t service)
{
	return COPY_AT(loader, slots, copy, service);
}

const struct service_transmit *loader_transmit(const struct loader *loader, uint32_t copy,
					       uint32_t service)
{
	return COPY_AT(loader, transmits, copy, service);
}

const struct service_split *loader_split(const struct loader *loader, uint32_t copy,
					 uint32_t service)
{
	return COPY_AT(loader, splits, copy, service);
}

const struct service_statuses *loader_statuses(const struct loader *loader, uint32_t copy,
					       uint32_t service)
{
	return COPY_AT(loader, statuses, copy, service);
}

const struct service_route *loader_route_row(const struct loader *loader, uint32_t copy,
					     uint32_t service, uint32_t row)
{
	const struct observer_config *config = loader_config(loader);
	size_t at = (size_t)copy * config->max_services + service;

	if (!loader->services.routes)
		return NULL;
	if (row + 1 < config->route_rows)
		row = loader->rows[row];
	return &loader->services.routes[at * config->route_rows + row];
}

const struct service_route *loader_command_row(const struct loader *loader, uint32_t copy,
					       uint32_t service, uint32_t row)
{
	const struct observer_config *config = loader_config(loader);
	size_t at = (size_t)copy * config->max_services + service;

	return &loader->services.commands[at * config->command_rows + row];
}

const struct service_unnamed *loader_unnamed(const struct loader *loader, uint32_t copy,
					     uint32_t service)
{
	return COPY_AT(loader, unnamed, copy, service);
}

const uint64_t *loader_command_places(const struct loader *loader)
{
	return loader->command_places;
}

const struct route_paths *loader_paths(const struct loader *loader, uint32_t service)
{
	return loader->services.paths ? &loader->services.paths[service] : NULL;
}

const char *loader_route(const struct loader *loader, uint32_t row)
{
	return row + 1 < loader->skel->rodata->config.route_rows ? loader->routes[row] : NULL;
}

const struct service_gauges *loader_gauges(const struct loader *loader, uint32_t service)
{
	return loader->skel->links.sockets_visit ? &loader->gauges[service] : NULL;
}

const struct listener_gauge *loader_listeners(const struct loader *loader, uint32_t *ret_count)
{
	uint32_t count = loader->skel->bss->listeners_next;

	if (!loader->skel->links.sockets_visit || count > LISTENERS_TOLD)
		return NULL;
	*ret_count = count;
	return loader->listeners;
}

struct run_number loader_overflows(const struct loader *loader, uint32_t netns)
{
	const struct visit *visit = visits_of(&loader->visits, netns);

	if (!visit || !visit->overflows.known)
		return (struct run_number){};
	return (struct run_number){
		.known = true,
		.value = visit->overflows.value - visit->overflows_before.value,
	};
}

const struct service_open *loader_open_requests(const struct loader *loader, uint32_t service)
{
	return loader->skel->links.sockets_visit ? &loader->opens[service] : NULL;
}

const struct service_spans *loader_spans(const struct loader *loader, uint32_t service)
{
	return &loader->services.spans[service];
}

const struct service_windows *loader_windows(const struct loader *loader, uint32_t service)
{
	return loader->services.windows ? &loader->services.windows[service] : NULL;
}

bool loader_ports(const struct loader *loader, uint32_t netns, uint32_t *ret_capacity,
		  struct port_place *ret_fullest)
{
	const struct visit *visit = visits_of(&loader->visits, netns);

	if (!visit || !visit->met || !visit->ports_known)
		return false;
	*ret_capacity = visit->ports_capacity;
	*ret_fullest = visit->fullest;
	return true;
}

uint32_t loader_copies(const struct loader *loader)
{
	return loader->skel->rodata->config.copies;
}

const struct observer_config *loader_config(const struct loader *loader)
{
	return (const struct observer_config *)&loader->skel->rodata->config;
}

int loader_depths_fd(const struct loader *loader)
{
	const struct sojourn_bpf *skel = loader->skel;

	if ((!skel->links.exchange_ready && !skel->links.exchange_ready_http) ||
	    !skel->rodata->config.listener_depths)
		return -1;
	return bpf_map__fd(skel->maps.listener_depths);
}

void loader_owners(const struct loader *loader,
		   void (*visit)(void *context, const struct owner_key *owner), void *context)
{
	int fd = bpf_map__fd(loader->skel->maps.owners);
	struct owner_key key, *previous = NULL;

	for (; !bpf_map_get_next_key(fd, previous, &key); previous = &key)
		visit(context, &key);
}

void loader_fronts(const struct loader *loader, kernel_count_visit *visit, void *context)
{
	kernel_map_counts(loader->skel->maps.fronts, visit, context);
}

void loader_calls(const struct loader *loader, kernel_count_visit *visit, void *context)
{
	kernel_map_counts(loader->skel->maps.calls, visit, context);
}

int loader_timed_calls(const struct loader *loader, kernel_call_visit *visit, void *context)
{
	return kernel_map_calls(loader->skel->maps.call_places, loader->skel->maps.call_rows, visit,
				context);
}

int loader_ring_fd(const struct loader *loader)
{
	return bpf_map__fd(loader->skel->maps.ring);
}

void loader_set_sample_threshold(struct loader *loader, uint64_t threshold)
{
	loader->skel->bss->sample_threshold = threshold;
}

uint64_t loader_next_epoch(struct loader *loader)
{
	struct sojourn_bpf__bss *bss = loader->skel->bss;

	services_expect_epoch(&loader->services, bss->epoch + 1);
	bss->epoch_ns = clock_now_ns();
	__atomic_store_n(&bss->epoch, bss->epoch + 1, __ATOMIC_RELEASE);
	return bss->epoch;
}

uint64_t loader_first_message(const struct loader *loader, uint32_t copy, uint32_t service)
{
	return services_first_message(&loader->services, COPY_AT(loader, slots, copy, service));
}

static int read_program(const struct bpf_program *program, struct loader_program *ret_program)
{
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return -errno;
	*ret_program = (struct loader_program){
		.runs = info.run_cnt,
		.run_ns = info.run_time_ns,
		.recursion_misses = info.recursion_misses,
	};
	snprintf(ret_program->name, sizeof(ret_program->name), "%s", bpf_program__name(program));
	snprintf(ret_program->hook, sizeof(ret_program->hook), "%s",
		 bpf_program__section_name(program));
	return 0;
}

size_t loader_programs(const struct loader *loader, struct loader_program *ret_programs,
		       size_t size)
{
	struct bpf_program *program;
	size_t n = 0;

	bpf_object__for_each_program (program, loader->skel->obj) {
		if (n < size && bpf_program__autoload(program) &&
		    !read_program(program, &ret_programs[n]))
			n++;
	}
	return n;
}

uint64_t loader_map_bytes(const struct loader *loader)
{
	uint64_t bytes = kernel_map_bytes(loader->services.fence_fd) +
			 kernel_map_bytes(loader->services.fence_inner_fd);
	const struct bpf_map *map;

	bpf_object__for_each_map (map, loader->skel->obj) {
		if (bpf_map__fd(map) >= 0)
			bytes += kernel_map_bytes(bpf_map__fd(map));
	}
	return bytes;
}
