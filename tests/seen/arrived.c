// SPDX-License-Identifier: MIT
/*
 * sojourn-arrived PID: print a line "ARRIVED READ" for each of the process's sockets that an
 * observer follows over UDP. These are the datagrams counted at arrival and at read.
 *
 * Every result has the reads, but not the arrivals, which no user needs. They are in the socket's
 * storage, which the kernel shows to the socket's holder. Members are found by the map's own types.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "sojourn/cleanup.h"

#define MAP	    "udp_sockets"
#define VALUE_BYTES 16384

/* Return a member's offset in bytes; -1: there is none. */
static int offset_of(const struct btf *btf, __u32 type, const char *name)
{
	const struct btf_type *value = btf__type_by_id(btf, type);

	for (int i = 0; value && i < btf_vlen(value); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(value)[i].name_off), name))
			return (int)btf_member_bit_offset(value, (__u32)i) / 8;
	return -1;
}

static __u32 member(const char *value, int offset)
{
	__u32 number;

	memcpy(&number, value + offset, sizeof(number));
	return number;
}

/* Print the socket's counts, and return whether this map has its storage. */
static int print_socket(int map, const struct bpf_map_info *info, int socket)
{
	static char value[VALUE_BYTES];
	struct btf *btf;
	int arrived, read;

	if (info->value_size > sizeof(value) || bpf_map_lookup_elem(map, &socket, value))
		return 0;
	btf = btf__load_from_kernel_by_id(info->btf_id);
	arrived = offset_of(btf, info->btf_value_type_id, "arrived");
	read = offset_of(btf, info->btf_value_type_id, "read");
	btf__free(btf);
	if (arrived < 0 || read < 0)
		return 0;
	printf("%u %u\n", member(value, arrived), member(value, read));
	return 1;
}

static int print_in_maps(int socket)
{
	int printed = 0;

	for (__u32 id = 0; !bpf_map_get_next_id(id, &id);) {
		autoclose int map = bpf_map_get_fd_by_id(id);
		struct bpf_map_info info = {};
		__u32 bytes = sizeof(info);

		if (map < 0 || bpf_obj_get_info_by_fd(map, &info, &bytes) || strcmp(info.name, MAP))
			continue;
		printed += print_socket(map, &info, socket);
	}
	return printed;
}

int main(int argc, char **argv)
{
	int pid = argc == 2 ? atoi(argv[1]) : 0, printed = 0;
	autoclose int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	if (pidfd < 0 || !folder) {
		fprintf(stderr, "sojourn-arrived: process '%s': %s\n", argc == 2 ? argv[1] : "",
			strerror(errno));
		return 2;
	}
	for (const struct dirent *entry; (entry = readdir(folder));) {
		autoclose int fd = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);

		if (fd >= 0)
			printed += print_in_maps(fd);
	}
	closedir(folder);
	return printed ? 0 : 1;
}
