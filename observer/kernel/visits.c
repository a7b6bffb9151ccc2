// SPDX-License-Identifier: MIT
/* Finding, entering and leaving network namespaces; see visits.h. */
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

#include "host/netns.h"
#include "host/numbers.h"
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

static void drop(struct visits *visits, void (*ended)(void *context, uint32_t inode), void *context)
{
	size_t kept = 0;

	for (size_t i = 0; i < visits->count; i++) {
		if (visits->list[i].there) {
			visits->list[kept++] = visits->list[i];
			continue;
		}
		visits->told.ended++;
		ended(context, visits->list[i].netns.inode);
	}
	visits->count = kept;
}

int visits_find(struct visits *visits, void (*ended)(void *context, uint32_t inode), void *context)
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
		drop(visits, ended, context);
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

int visits_enter(struct visits *visits, struct visit *visit, bool *ret_another)
{
	int r = 0;

	*ret_another = false;
	if (!visits->all)
		return visits->fd >= 0 ? enter(visits, visits->fd) : 0;
	if (visit->netns.inode != visits->own)
		r = enter_by_path(visits, visit);
	visit->error = r;
	if (!r)
		*ret_another = is_another(visit);
	/* The process that led to it has ended. Search again at once: another one may lead to it. */
	if (r == -ENOENT || r == -ESTALE)
		visits->found_ns = 0;
	visits->told.ended += *ret_another;
	return r;
}

int visits_leave(struct visits *visits)
{
	int r = visits->away ? netns_enter(visits->own_fd) : 0;

	if (!r)
		visits->away = false;
	return r;
}

void visits_count(struct visits *visits, const struct visit *visit)
{
	struct run_namespaces *told = &visits->told;

	told->observed += !visit->error;
	told->not_entered += visit->error != 0;
	if (visit->error)
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

void visits_begin_ports(struct visit *visit, struct sojourn_bpf__bss *bss,
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

void visits_end_ports(struct visit *visit, const struct sojourn_bpf__bss *bss,
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
