// SPDX-License-Identifier: MIT
/*
 * The powers of a confined process, tried from inside: a child of each test confines itself and makes the calls. The
 * file system would allow the refused ones, and the error is ENOSYS. So the filter refuses them, not the change of user.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/confine.h"
#include "sojourn/cleanup.h"

/* Everybody may write here. */
static char folder[] = "/tmp/sojourn-confine.XXXXXX";
static char there[64], fresh[64];
/* A socket from before the confinement, as the endpoint has those of its callers. Its peer is itself. */
static int speaker = -1;
static struct sockaddr_in here;

static int open_speaker(void)
{
	socklen_t length = sizeof(here);

	here = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	speaker = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (speaker < 0 || bind(speaker, (struct sockaddr *)&here, length))
		return -1;
	return getsockname(speaker, (struct sockaddr *)&here, &length);
}

static int set_up(void **state)
{
	FILE *file;

	if (open_speaker())
		return -1;
	if (!mkdtemp(folder) || chmod(folder, 0777))
		return -1;
	snprintf(there, sizeof(there), "%s/there", folder);
	snprintf(fresh, sizeof(fresh), "%s/fresh", folder);
	file = fopen(there, "w");
	if (!file || fputs("text", file) == EOF || fclose(file))
		return -1;
	return chmod(there, 0666);
}

static int tear_down(void **state)
{
	close(speaker);
	unlink(there);
	return rmdir(folder);
}

/* ---- what is tried: 0 or more where it works ---- */

static long undo(long fd)
{
	int error = errno;

	if (fd >= 0)
		close((int)fd);
	unlink(fresh);
	errno = error;
	return fd;
}

static long write_file(void)
{
	return undo(open(there, O_WRONLY | O_CLOEXEC));
}

static long read_and_write(void)
{
	return undo(open(there, O_RDWR | O_APPEND | O_CLOEXEC));
}

static long create(void)
{
	return undo(open(fresh, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

static long empty_by_opening(void)
{
	return undo(open(there, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static long open_in_memory(void)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = {.flags = O_WRONLY};

	return undo(syscall(SYS_openat2, AT_FDCWD, there, &how, sizeof(how)));
}

static long make_folder(void)
{
	return mkdir(fresh, 0777) ? -1 : rmdir(fresh);
}

static long make_link(void)
{
	return symlink(there, fresh) ? -1 : unlink(fresh);
}

static long rename_there_and_back(void)
{
	return rename(there, fresh) ? -1 : rename(fresh, there);
}

static long change_mode(void)
{
	return chmod(there, 0666);
}

static long start_process(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	return child < 0 ? -1 : waitpid(child, NULL, 0);
}

static long start_program(void)
{
	return execl("/bin/true", "true", NULL);
}

static long enter_user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static long enter_network_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	long r = setns(fd, CLONE_NEWNET);

	undo(fd);
	return r;
}

static long set_up_io_uring(void)
{
	char parameters[256] = "";

	return undo(syscall(SYS_io_uring_setup, 4, parameters));
}

static long load_program(void)
{
	char attributes[256] = "";

	return undo(syscall(SYS_bpf, BPF_PROG_LOAD, attributes, 128));
}

static long make_map(void)
{
	char attributes[256] = "";

	return undo(syscall(SYS_bpf, BPF_MAP_CREATE, attributes, 128));
}

static long look_up(void)
{
	char attributes[256] = "";
	long r = syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, attributes, 128);

	return r < 0 && errno == ENOSYS ? -1 : 0;
}

static long trace_parent(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static long signal_parent(void)
{
	return kill(getppid(), SIGURG);
}

static long speak_ipv4(void)
{
	return undo(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static long connect_what_is_open(void)
{
	return connect(speaker, (struct sockaddr *)&here, sizeof(here));
}

static long connect_by_sending(void)
{
	return sendto(speaker, "text", 4, MSG_FASTOPEN, (struct sockaddr *)&here, sizeof(here));
}

static long send_text(void)
{
	return sendto(speaker, "text", 4, MSG_NOSIGNAL, (struct sockaddr *)&here, sizeof(here));
}

static long make_pair(void)
{
	int ends[2];
	int r = socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends);

	if (!r)
		undo(ends[0]), undo(ends[1]);
	return r;
}

/* The owner of a descriptor gets this signal when there is something to read. */
static long signal_by_descriptor(void)
{
	return fcntl(speaker, F_SETSIG, SIGURG);
}

static long kill_itself(void)
{
	return kill(getpid(), SIGKILL);
}

static long speak_raw(void)
{
	return undo(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

static long look_at_sockets(void)
{
	return undo(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

static long configure_network(void)
{
	return undo(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

static long mount_something(void)
{
	return mount("none", folder, "tmpfs", 0, NULL);
}

static long become_root(void)
{
	return setresuid(0, 0, 0);
}

static long set_limit(void)
{
	struct rlimit *none = NULL;

	return syscall(SYS_prlimit64, 0, 7, "0123456789abcdef", none);
}

static long read_system(void)
{
	return undo(open("/proc/sys/net/core/somaxconn", O_RDONLY | O_CLOEXEC));
}

/* The parent runs as the user that this process had before. */
static long look_at_others_files(void)
{
	char path[64], target[256];

	snprintf(path, sizeof(path), "/proc/%d/fd/0", getppid());
	return readlink(path, target, sizeof(target));
}

static long write_memory(void)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);

	return fd < 0 || write(fd, "text", 4) != 4 ? -1 : undo(fd);
}

static void *nothing(void *unused)
{
	return unused;
}

static long start_thread(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, nothing, NULL);
	return errno ? -1 : pthread_join(thread, NULL);
}

enum {
	FREE = 1,      /* works in a process that is not confined, whoever it is */
	OBSERVING = 2, /* works in a process confined for this purpose; likewise the next two */
	FILING = 4,
	SENDING = 8,
	PERHAPS = 16, /* in the others it depends on the user who started the test */
};

static const struct attempt {
	const char *name;
	long (*make)(void);
	unsigned int works;
} attempts[] = {
	{"write_file", write_file, FREE | FILING},
	{"read_and_write", read_and_write, FREE | FILING},
	{"create", create, FREE | FILING},
	{"empty_by_opening", empty_by_opening, FREE | FILING},
	{"open_in_memory", open_in_memory, FREE},
	{"make_folder", make_folder, FREE},
	{"make_link", make_link, FREE},
	{"rename", rename_there_and_back, FREE | FILING},
	{"change_mode", change_mode, FREE},
	{"start_process", start_process, FREE},
	{"start_program", start_program, 0},
	{"enter_user_namespace", enter_user_namespace, 0},
	{"enter_network_namespace", enter_network_namespace, 0},
	{"set_up_io_uring", set_up_io_uring, 0},
	{"load_program", load_program, 0},
	{"make_map", make_map, 0},
	{"look_up", look_up, FREE | OBSERVING},
	{"trace_parent", trace_parent, 0},
	{"signal_parent", signal_parent, FREE},
	{"speak_ipv4", speak_ipv4, FREE | SENDING},
	{"connect_what_is_open", connect_what_is_open, FREE | SENDING},
	{"connect_by_sending", connect_by_sending, FREE | SENDING},
	{"send_text", send_text, FREE | OBSERVING | SENDING},
	{"make_pair", make_pair, FREE | SENDING},
	{"signal_by_descriptor", signal_by_descriptor, FREE},
	{"kill_itself", kill_itself, 0},
	{"speak_raw", speak_raw, 0},
	{"look_at_sockets", look_at_sockets, FREE | OBSERVING | SENDING},
	{"configure_network", configure_network, FREE | SENDING},
	{"mount_something", mount_something, 0},
	{"become_root", become_root, 0},
	{"set_limit", set_limit, 0},
	{"read_system", read_system, FREE | OBSERVING | FILING | SENDING},
	{"look_at_others_files", look_at_others_files, FREE | OBSERVING | PERHAPS},
	{"write_memory", write_memory, FREE | OBSERVING | FILING | SENDING},
	{"start_thread", start_thread, FREE | SENDING},
};

struct outcome {
	long value;
	int error;
};

/* ---- a child that tries them ---- */

static int confine_to(unsigned int what)
{
	struct confine_options options = {0};

	if (what == FREE)
		return 0;
	if (what == SENDING)
		return confine_all();
	if (what == FILING)
		return confine_files();
	return confine_find_user(NULL, &options.user) ?: confine(&options);
}

_Noreturn static void try_all(unsigned int what, int fd)
{
	struct outcome outcomes[ARRAY_SIZE(attempts)] = {0};

	if (confine_to(what))
		_exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		if (what == FREE && !(attempts[i].works & FREE))
			continue;
		errno = 0;
		outcomes[i].value = attempts[i].make();
		outcomes[i].error = errno;
	}
	_exit(write(fd, outcomes, sizeof(outcomes)) != sizeof(outcomes));
}

static void outcomes_of(unsigned int what, struct outcome outcomes[ARRAY_SIZE(attempts)])
{
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		try_all(what, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], outcomes, ARRAY_SIZE(attempts) * sizeof(*outcomes)),
			 ARRAY_SIZE(attempts) * sizeof(*outcomes));
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void check(unsigned int what)
{
	struct outcome outcomes[ARRAY_SIZE(attempts)];

	outcomes_of(what, outcomes);
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
		bool works = attempts[i].works & what;

		if (!works && (what == FREE || attempts[i].works & PERHAPS))
			continue;
		if (works ? outcomes[i].value < 0 : outcomes[i].error != ENOSYS)
			fail_msg("%s: %ld, %s", attempts[i].name, outcomes[i].value,
				 strerror(outcomes[i].error));
	}
}

static void test_without_it_all_of_that_works(void **state)
{
	check(FREE);
}

static void test_who_observes_reads(void **state)
{
	check(OBSERVING);
}

static void test_who_makes_files_may_do_no_more_than_that(void **state)
{
	check(FILING);
}

static void test_who_sends_speaks_to_the_network_alone(void **state)
{
	check(SENDING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_it_all_of_that_works),
		cmocka_unit_test(test_who_observes_reads),
		cmocka_unit_test(test_who_makes_files_may_do_no_more_than_that),
		cmocka_unit_test(test_who_sends_speaks_to_the_network_alone),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
