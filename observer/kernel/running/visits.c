// SPDX-License-Identifier: MIT
/* Finding and entering network namespaces, and passing over their sockets; see visits.h. */
#include "visits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "host/net/netns.h"
#include "host/net/numbers.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define FIND_NS NSEC_PER_SEC

int visits_open(struct visits *visits, int fd, uint32_t inode, bool all)
{
	struct visit *visit;
	struct stat own;

	visits->all = all;
	visits->fd = fd;
	visits->own_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (visits->own_fd < 0 || fstat(visits->own_fd, &own) < 0)
		return -errno;
	visits->own = (uint32_t)own.st_ino;
	if (all)
		return 0;
	visit = ARRAY_APPEND(visits->list, visits->count);
	if (!visit)
		return -ENOMEM;
	visit->netns.inode = inode;
	return 0;
}

void visits_close(struct visits *visits)
{
	cleanup_close(&visits->own_fd);
	free(visits->list);
}

struct visit *visits_of(const struct visits *visits, uint32_t inode)
{
	for (size_t i = 0; i < visits->count; i++)
		if (visits->list[i].netns.inode == inode)
			return &visits->list[i];
	return NULL;
}

/* ---- coming and going ---- */

/* Add new namespaces. Update the path of known ones: it changes when the process that led to it ends. */
static int take(struct visits *visits, const struct namespaces *found)
{
	for (size_t i = 0; i < found->count; i++) {
		struct visit *visit = visits_of(visits, found->list[i].inode);

		if (!visit)
			visit = ARRAY_APPEND(visits->list, visits->count);
		if (!visit)
			return -ENOMEM;
		visit->netns = found->list[i];
		visit->there = true;
	}
	return 0;
}

static void drop(struct visits *visits)
{
	size_t kept = 0;

	for (size_t i = 0; i < visits->count; i++) {
		if (visits->list[i].there)
			visits->list[kept++] = visits->list[i];
		else
			visits->told.ended++;
	}
	visits->count = kept;
}

int visits_find(struct visits *visits)
{
	struct namespaces found;
	uint64_t now = clock_now_ns();
	int r;

	if (!visits->all || (visits->found_ns && now - visits->found_ns < FIND_NS))
		return 0;
	r = namespaces_find(&found);
	if (r < 0)
		return r;
	for (size_t i = 0; i < visits->count; i++)
		visits->list[i].there = false;
	r = take(visits, &found);
	if (!r)
		drop(visits);
	visits->told.left_out = found.left_out;
	visits->told.unseen_processes = found.unseen;
	visits->found_ns = now;
	namespaces_free(&found);
	return r;
}

/* ---- entering ---- */

static int enter(struct visits *visits, int fd)
{
	int r = netns_enter(fd);

	if (!r)
		visits->away = true;
	return r;
}

static int enter_by_path(struct visits *visits, const struct visit *visit)
{
	autoclose int fd = open(visit->netns.path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* The process has ended, and another one has its number. */
	return st.st_ino == visit->netns.inode ? enter(visits, fd) : -ESTALE;
}

/*
 * Return whether another namespace has the number now, and then reset @visit. The kernel reuses numbers at once, and
 * the results of one namespace must not pass to another.
 */
static bool is_another(struct visit *visit)
{
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	uint64_t cookie = 0, before = visit->cookie;
	socklen_t length = sizeof(cookie);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) < 0)
		return false;
	if (before && before != cookie)
		*visit = (struct visit){.netns = visit->netns, .there = visit->there};
	visit->cookie = cookie;
	return before && before != cookie;
}

/* The process that led to the namespace has ended. Another one may lead to it, or it has ended, too. */
static bool is_stale(int error)
{
	return error == -ENOENT || error == -ESTALE;
}

/* Enter the namespace. Return 0, which takes a leave(), or -errno. */
static int enter_visited(struct visits *visits, struct visit *visit)
{
	int r = 0;

	if (!visits->all)
		return visits->fd >= 0 ? enter(visits, visits->fd) : 0;
	if (visit->netns.inode != visits->own)
		r = enter_by_path(visits, visit);
	visit->error = r;
	if (!r)
		visits->told.ended += is_another(visit);
	if (is_stale(r))
		visits->found_ns = 0; /* search again at once */
	return r;
}

static int leave(struct visits *visits)
{
	int r = visits->away ? netns_enter(visits->own_fd) : 0;

	if (!r)
		visits->away = false;
	return r;
}

/* Count the namespace in the reading, as observed or as not entered, with the reason: if possible a lasting one. */
static void count(struct visits *visits, const struct visit *visit)
{
	struct run_namespaces *told = &visits->told;

	told->observed += !visit->error;
	told->not_entered += visit->error != 0;
	if (visit->error && !(told->reason[0] && is_stale(visit->error)))
		snprintf(told->reason, sizeof(told->reason), "%s%s", strerror(-visit->error),
			 visit->error == -EPERM ? " (this takes CAP_SYS_ADMIN)" : "");
}

/* ---- ports ---- */

static void read_overflows(struct visit *visit)
{
	visit->overflows = numbers_one(NUMBER_LISTEN_OVERFLOWS);
	if (!visit->overflows_before.known)
		visit->overflows_before = visit->overflows;
}

/* Set which ports the pass counts. */
static void begin_ports(struct visit *visit, struct sojourn_bpf__bss *bss,
			struct port_rules *ret_rules)
{
	/* The range may change at any time. If it cannot be read no port counts. */
	if (numbers_rules(ret_rules) < 0)
		*ret_rules = (struct port_rules){};
	bss->ports_low = ret_rules->low;
	bss->ports_high = ret_rules->high;
	bss->ports_unplaced = 0;
	memcpy(bss->ports_held, ret_rules->reserved, sizeof(ret_rules->reserved));
	read_overflows(visit);
}

/* Take over which ports are held, and the destination that uses the most others. */
static void end_ports(struct visit *visit, const struct sojourn_bpf__bss *bss,
		      const struct port_place *places, struct port_rules *rules)
{
	visit->fullest = (struct port_place){};
	for (size_t i = 0; i < PORT_PLACES; i++) {
		if (places[i].used > visit->fullest.used)
			visit->fullest = places[i];
	}
	memcpy(rules->held, bss->ports_held, sizeof(rules->held));
	visit->ports_capacity = ports_capacity(rules);
	/*
	 * If more connections found no place than the fullest destination has, that destination may be the wrong one.
	 */
	visit->ports_known = rules->high && bss->ports_unplaced <= visit->fullest.used;
}

/* ---- passing over the sockets ---- */

/*
 * Create an iterator, which walks the network namespace that we are in now. *ret_fd is -1 if its program was not
 * loaded.
 */
static int create_iterator(const struct bpf_link *link, int *ret_fd)
{
	*ret_fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	return link && *ret_fd < 0 ? -errno : 0;
}

/* Run one pass of the iterator's program over the sockets. */
static int run_pass(int fd)
{
	char nothing[64];
	ssize_t n;

	if (fd < 0)
		return 0;
	/* The program prints nothing: reading only drives it, and ends when the sockets do. */
	do {
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

/* Enter the namespace to read its port rules and to create the iterators over its sockets. Leave it. */
static int open_passes(struct visits *visits, struct visit *visit, const struct visits_pass *pass,
		       struct port_rules *ret_rules, int ret_fds[2])
{
	int r = enter_visited(visits, visit);

	if (r < 0)
		return r;
	memset(pass->places, 0, pass->places_bytes);
	begin_ports(visit, pass->skel->bss, ret_rules);
	r = create_iterator(pass->skel->links.sockets_visit, &ret_fds[0]);
	if (!r)
		r = create_iterator(pass->skel->links.udp_visit, &ret_fds[1]);
	if (leave(visits) < 0)
		return -ENOTRECOVERABLE;
	return r;
}

static int visit_namespace(struct visits *visits, struct visit *visit,
			   const struct visits_pass *pass)
{
	uint32_t idle = pass->skel->bss->listeners_idle;
	autoclose int tcp_fd = -1, udp_fd = -1;
	int fds[2] = {-1, -1};
	struct port_rules rules;
	int r = open_passes(visits, visit, pass, &rules, fds);

	tcp_fd = fds[0];
	udp_fd = fds[1];
	if (!r)
		r = run_pass(tcp_fd);
	if (!r && pass->skel->links.sockets_visit)
		end_ports(visit, pass->skel->bss, pass->places, &rules);
	if (!r)
		r = run_pass(udp_fd);
	visit->met = !r;
	visit->idle = pass->skel->bss->listeners_idle - idle;
	return r;
}

int visits_run(struct visits *visits, const struct visits_pass *pass)
{
	struct run_namespaces *told = &visits->told;
	uint64_t begin_ns = clock_now_ns();
	int r = 0;

	told->observed = told->not_entered = told->visited = 0;
	told->reason[0] = 0;
	for (size_t i = 0; !r && i < visits->count; i++) {
		struct visit *visit = &visits->list[i];

		if (pass->is_due(pass->context, visit)) {
			r = visit_namespace(visits, visit, pass);
			told->visited += !r;
			if (visits->all && r != -ENOTRECOVERABLE)
				r = 0;
		}
		count(visits, visit);
	}
	told->visit_ns = clock_now_ns() - begin_ns;
	return r;
}
