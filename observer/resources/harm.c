// SPDX-License-Identifier: MIT
/*
 * Any user may exhaust what is his own: descriptors of a process, the queue of a listener, the ports
 * towards a destination. That must not make the whole host's state critical.
 */
#include "harm.h"

#include <errno.h>

#include "host/namespaces.h"
#include "host/process.h"
#include "look.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* Users from here on are people's. systemd's dynamic users, which are services, are in a range of their own. */
#define ORDINARY_FROM 1000U
#define DYNAMIC_FROM  61184U
#define DYNAMIC_TO    65519U
#define NOBODY	      65534U

static bool is_ordinary(const struct harm *harm, uint32_t user)
{
	if (user == harm->user && user != NOBODY)
		return false;
	return user >= ORDINARY_FROM && (user < DYNAMIC_FROM || user > DYNAMIC_TO);
}

/*
 * Users of containers do not say who they belong to. The namespace's owner does: root, or the ordinary user who has
 * made it with a user namespace. If the owner is not known, the services count.
 */
static bool is_namespace_ordinary(const struct harm *harm, int fd)
{
	uint32_t owner;

	return !namespaces_owner(fd, &owner) && is_ordinary(harm, owner);
}

static bool is_process_elsewhere(const struct harm *harm, uint32_t pid)
{
	autoclose int fd = -1;
	int r = harm->every_netns ? namespaces_open(pid, &fd) : -ENOENT;

	return r != -ENOENT && (r || !is_namespace_ordinary(harm, fd));
}

static bool is_listener_elsewhere(const struct harm *harm, const struct resource *resource)
{
	for (size_t i = 0; harm->every_netns && i < harm->target_count; i++)
		if (harm->targets[i].inode == resource->netns && harm->targets[i].fd >= 0)
			return !is_namespace_ordinary(harm, harm->targets[i].fd);
	return false;
}

/* A process that has ended serves nobody. */
static bool is_of_ordinary_user(const struct harm *harm, uint32_t pid)
{
	uint32_t user;

	return process_user(pid, &user) ||
	       (is_ordinary(harm, user) && !is_process_elsewhere(harm, pid));
}

static bool are_owners_ordinary(const struct harm *harm, const struct resource *resource)
{
	for (size_t i = 0; i < resource->owner_count; i++)
		if (!is_of_ordinary_user(harm, resource->owners[i].pid))
			return false;
	/* More owners of ports than are kept may be anybody's; those of others are workers of one service. */
	return resource->owner_count < RESOURCE_OWNERS || resource->kind != RESOURCE_PORT_FAILURES;
}

/*
 * Return whether ordinary users alone have a part in it. Ports in TIME_WAIT have no owner, so there
 * the listener that they lead to must be an ordinary user's, too. All need ports towards other hosts.
 */
static bool is_ordinary_alone(const struct harm *harm, const struct resource *resource)
{
	bool listener = resource->has_user && is_ordinary(harm, resource->user) &&
			!is_listener_elsewhere(harm, resource);

	if (resource->kind == RESOURCE_PORTS)
		return listener && are_owners_ordinary(harm, resource);
	if (resource->has_user)
		return listener;
	return resource->owner_count && are_owners_ordinary(harm, resource);
}

/* Return whether others depend on the process: it listens, is of an observed service, or was named. */
static bool serves(const struct harm *harm, uint32_t pid)
{
	const struct run *run = harm->run;

	if (pid == harm->pid)
		return true;
	for (size_t i = 0; i < run->service_count; i++)
		for (size_t j = 0; j < run->services[i].process_count; j++)
			if (run->services[i].processes[j].pid == pid)
				return true;
	return process_listens(pid);
}

static bool has_ended(uint32_t pid)
{
	uint32_t user;

	return process_user(pid, &user) == -ESRCH;
}

const char *harm_excuse(const void *context, const struct resource *resource)
{
	static const bool of_users[RESOURCE_KINDS] = {
		[RESOURCE_PORTS] = true,
		[RESOURCE_PORT_FAILURES] = true,
		[RESOURCE_ACCEPT_QUEUE] = true,
		[RESOURCE_SYN_QUEUE] = true,
		[RESOURCE_DESCRIPTORS] = true,
		[RESOURCE_REQUESTS] = true,
		[RESOURCE_DESCRIPTOR_FAILURES] = true,
	};
	const struct harm *harm = context;
	bool descriptors = resource->kind == RESOURCE_DESCRIPTORS ||
			   resource->kind == RESOURCE_DESCRIPTOR_FAILURES;

	if (descriptors && resource->owner_count && has_ended(resource->owners[0].pid))
		return "the process has ended, so it harms nobody any more";
	if (descriptors && resource->owner_count && !serves(harm, resource->owners[0].pid))
		return "the process does not listen, so it harms only itself";
	if (harm->every_user || harm->pid || !of_users[resource->kind])
		return NULL;
	if (harm->port && (resource->port == harm->port || resource->other_port == harm->port))
		return NULL;
	if (!is_ordinary_alone(harm, resource))
		return NULL;
	return "only processes of ordinary users (from user 1000 on) have a part in it, and no "
	       "option names them";
}
