// SPDX-License-Identifier: MIT
/* Asks the kernel whether TCP reads its clock at each read; see read_clock.h. */
#include "read_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>

#include <bpf/libbpf.h>

#include "host/net/loopback.h"
#include "host/net/netns.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define QUESTIONS 3
#define WAIT_NS	  500000 /* between the segment and its read: far more than both take */

/* Return whether TCP's time is that of the read, and not that of the segment. */
static bool is_kept(struct sojourn_bpf *skel, int client, int server)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	const volatile __u64 *found_ns = &skel->bss->read_clock_ns;
	uint64_t before_ns, kept_ns;
	char byte = 0;

	skel->bss->read_clock_ns = 0;
	if (send(client, &byte, 1, MSG_NOSIGNAL) != 1 || nanosleep(&wait, NULL))
		return false;
	before_ns = clock_now_ns();
	if (recv(server, &byte, 1, 0) != 1)
		return false;
	kept_ns = *found_ns;
	return kept_ns > before_ns && kept_ns < clock_now_ns();
}

/* Several times: something else may happen to have TCP read its clock just then. */
static bool is_always_kept(struct sojourn_bpf *skel)
{
	struct sockaddr_in address;
	autoclose int listener = loopback_listen(&address), client = -1, server = -1;
	bool kept = listener >= 0 && !loopback_connect(listener, &address, &client, &server);

	skel->bss->read_clock_port = ntohs(address.sin_port);
	for (int i = 0; kept && i < QUESTIONS; i++)
		kept = is_kept(skel, client, server);
	return kept;
}

static int ask(struct sojourn_bpf *skel)
{
	autoclose int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = own < 0 ? -EPERM : loopback_enter();

	if (r == -EPERM)
		return 0;
	if (!r)
		skel->bss->read_clock = is_always_kept(skel);
	return netns_enter(own);
}

int read_clock_ask(struct sojourn_bpf *skel)
{
	struct bpf_program *program = skel->progs.read_clock_look;
	struct bpf_link *link = NULL;
	int r = 0;

	if (!bpf_program__autoload(program))
		return 0;
	bpf_program__set_autoattach(program, false);
	link = bpf_program__attach(program);
	if (link)
		r = ask(skel);
	bpf_link__destroy(link);
	bpf_program__unload(program);
	return r;
}
