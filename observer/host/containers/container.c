// SPDX-License-Identifier: MIT
/* Reads paths of cgroups as container runtimes make them, and the runtimes' files; see container.h. */
#include "container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"
#include "sojourn/text.h"

#define ID_LENGTH 64 /* of a container's number in hexadecimal digits */

/* ---- a part of the path ---- */

/*
 * Return the container's number in one part of a path: "NUMBER", "docker-NUMBER.scope",
 * "cri-containerd-NUMBER.scope", "SLICE:cri-containerd:NUMBER". NULL: it names none. The "conmon" scopes of Podman
 * and CRI-O do not count: they only watch over a container.
 */
static const char *find_id(const char *part, size_t length)
{
	for (size_t at = 0; at + ID_LENGTH <= length; at++) {
		bool first = !at || part[at - 1] == '-' || part[at - 1] == ':';

		if (!first || strspn(part + at, "0123456789abcdef") != ID_LENGTH)
			continue;
		return at >= sizeof("conmon-") - 1 && text_begins(part + at - 7, "conmon-")
			       ? NULL
			       : part + at;
	}
	return NULL;
}

/*
 * Return where the pod's number begins in "pod3f2a-…" or "kubepods-burstable-pod3f2a_….slice"; NULL: it names none.
 */
static const char *find_uid(const char *part, size_t length)
{
	const char *found = NULL;

	if (text_begins(part, "pod"))
		found = part + 3;
	for (size_t at = 0; text_begins(part, "kubepods") && !found && at + 4 < length; at++)
		if (text_begins(part + at, "-pod"))
			found = part + at + 4;
	return found && found < part + length && isxdigit((unsigned char)*found) ? found : NULL;
}

/* In a systemd slice the dashes of the number are underscores. */
static void copy_uid(const char *from, char *uid, size_t size)
{
	size_t length = strspn(from, "0123456789abcdef-_");

	snprintf(uid, size, "%.*s", (int)length, from);
	for (char *c = uid; *c; c++)
		if (*c == '_')
			*c = '-';
	if (length < 32 || length >= size)
		*uid = 0;
}

/* ---- the path ---- */

/* Parse from the path's end: of containers in containers the innermost counts. */
static void parse_path(const char *path, struct run_place *place)
{
	const char *end = path + strlen(path);

	while (end > path) {
		const char *part = end, *found;

		while (part > path && part[-1] != '/')
			part--;
		found = find_id(part, (size_t)(end - part));
		if (found && !place->container_id[0] && !place->pod_uid[0])
			snprintf(place->container_id, sizeof(place->container_id), "%.*s",
				 ID_LENGTH, found);
		found = find_uid(part, (size_t)(end - part));
		if (found && !place->pod_uid[0])
			copy_uid(found, place->pod_uid, sizeof(place->pod_uid));
		end = part > path ? part - 1 : path;
	}
}

/* "0::PATH" is cgroup v2; "1:name=systemd:PATH" and the others are v1. NULL: it is no such line. */
static const char *path_of(const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	return path && path[1] == '/' ? path + 1 : NULL;
}

/* On hosts with both versions either may have the path: one that names a container says more than "/". */
static bool says_more(const struct run_place *place, const struct run_place *than)
{
	if (!place->container_id[0] != !than->container_id[0])
		return place->container_id[0];
	return !than->cgroup[0] || (!than->cgroup[1] && place->cgroup[1]);
}

void container_parse(const char *text, struct run_place *ret_place)
{
	struct run_place best = {0};

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[PATH_MAX];
		const char *path;

		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		path = path_of(line);
		if (path) {
			struct run_place place = {0};

			parse_path(path, &place);
			snprintf(place.cgroup, sizeof(place.cgroup), "%s", path);
			text_make_printable(place.cgroup, '?');
			if (says_more(&place, &best) ||
			    (text_begins(line, "0::") && !best.container_id[0] && path[1]))
				best = place;
		}
		text += length + (text[length] == '\n');
	}
	*ret_place = best;
}

int container_read(uint32_t pid, struct run_place *ret_place)
{
	char text[4 * PATH_MAX];

	if (procfs_read(procfs_open("/proc/%u/cgroup", pid), text, sizeof(text)) <= 0)
		return -ESRCH;
	container_parse(text, ret_place);
	return 0;
}

/* ---- names ---- */

__attribute__((format(printf, 3, 4))) static void set(char *text, size_t size, const char *format,
						      ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, size, format, arguments);
	va_end(arguments);
	text_make_printable(text, '?');
}
#define SET(field, ...) set(field, sizeof(field), __VA_ARGS__)

/* Return the file's contents as JSON; NULL: there is none, or we may not read it. */
static json_t *load(const char *root, const char *path)
{
	autofree char *whole = text_format("%s%s", root, path);

	return whole ? json_load_file(whole, 0, NULL) : NULL;
}

/* Docker's own: {"Name": "/web"}. */
static void ask_docker(const char *root, struct run_place *place)
{
	autojson json_t *json = NULL;
	const char *name;
	char path[160];

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json",
		 place->container_id);
	json = load(root, path);
	name = json_string_value(json_object_get(json, "Name"));
	if (name)
		SET(place->container, "%s", name + (*name == '/'));
}

/* Podman's: a list of [{"id": …, "names": ["web"]}]. */
static void ask_podman(const char *root, struct run_place *place)
{
	autojson json_t *json =
		load(root, "/var/lib/containers/storage/overlay-containers/containers.json");
	json_t *entry;
	size_t i;

	json_array_foreach (json, i, entry) {
		const char *id = json_string_value(json_object_get(entry, "id"));
		json_t *names = json_object_get(entry, "names");
		const char *name = json_string_value(json_array_get(names, 0));

		if (id && name && !strcmp(id, place->container_id))
			SET(place->container, "%s", name);
	}
}

/* The kubelet's links: POD_NAMESPACE_CONTAINER-NUMBER.log. */
static void take_log(const char *entry, struct run_place *place)
{
	const char *first = strchr(entry, '_');
	const char *second = first ? strchr(first + 1, '_') : NULL;
	size_t length = strlen(entry), behind = strlen(place->container_id) + sizeof("-.log") - 1;
	const char *dash = entry + length - behind;

	if (!second || length <= behind || dash <= second || *dash != '-' ||
	    strncmp(dash + 1, place->container_id, strlen(place->container_id)) != 0)
		return;
	SET(place->pod, "%.*s", (int)(first - entry), entry);
	SET(place->pod_namespace, "%.*s", (int)(second - first - 1), first + 1);
	SET(place->container, "%.*s", (int)(dash - second - 1), second + 1);
}

/* The kubelet's folders: NAMESPACE_POD_UID. Those of static pods have the number of their mirror's configuration. */
static void take_folder(const char *entry, struct run_place *place)
{
	const char *first = strchr(entry, '_'), *last = strrchr(entry, '_');

	if (!first || first == last || strcmp(last + 1, place->pod_uid) != 0)
		return;
	SET(place->pod_namespace, "%.*s", (int)(first - entry), entry);
	SET(place->pod, "%.*s", (int)(last - first - 1), first + 1);
}

static void each_entry(const char *root, const char *folder,
		       void (*take)(const char *entry, struct run_place *place),
		       struct run_place *place)
{
	autofree char *path = NULL;
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;

	if (asprintf(&path, "%s%s", root, folder) < 0)
		return;
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		take(entry->d_name, place);
}

/*
 * Any user may have cgroups of his own (systemd's user@.service), and name them like those of another's container. The
 * owner of the folder above has made it. If that cannot be seen, as with version 1, users have no such folders.
 */
static bool is_made_by_root(const char *root, const struct run_place *place)
{
	const char *id = place->container_id[0] ? strstr(place->cgroup, place->container_id) : NULL;
	const char *end = id ? id : place->cgroup + strlen(place->cgroup);
	autofree char *path = NULL;
	struct stat status;

	while (end > place->cgroup && *end != '/')
		end--;
	if (asprintf(&path, "%s/sys/fs/cgroup%.*s", root, (int)(end - place->cgroup),
		     place->cgroup) < 0)
		return false;
	return stat(path, &status) || !status.st_uid;
}

void container_name(const char *root, struct run_place *place)
{
	if (!is_made_by_root(root, place))
		return;
	if (place->container_id[0])
		each_entry(root, "/var/log/containers", take_log, place);
	if (place->pod_uid[0] && !place->pod[0])
		each_entry(root, "/var/log/pods", take_folder, place);
	if (place->container_id[0] && !place->container[0] && !place->pod_uid[0])
		ask_docker(root, place);
	if (place->container_id[0] && !place->container[0] && !place->pod_uid[0])
		ask_podman(root, place);
}

/* ---- several processes ---- */

static void cut_to_common(char *path, const char *other)
{
	size_t same = 0, parts = 0;

	while (path[same] && path[same] == other[same]) {
		parts = path[same] == '/' ? same : parts;
		same++;
	}
	if (!path[same] && (!other[same] || other[same] == '/'))
		return;
	if (!other[same] && path[same] == '/')
		parts = same;
	/* The root keeps its slash. */
	path[parts ? parts : path[0] == '/'] = 0;
}

void container_common(struct run_place *place, const struct run_place *other)
{
	cut_to_common(place->cgroup, other->cgroup);
	if (strcmp(place->container_id, other->container_id) != 0)
		place->container_id[0] = place->container[0] = 0;
	if (strcmp(place->pod_uid, other->pod_uid) != 0)
		place->pod_uid[0] = place->pod[0] = place->pod_namespace[0] = 0;
}
