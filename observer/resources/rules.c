// SPDX-License-Identifier: MIT
/* The table of rules; see diagnose.h. Every row has its section in docs/diagnoses.md. */
#include "diagnose.h"

/* clang-format off */
#define WIDEN_RANGE "sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
#define WIDEN_RISK \
	"a connection may take a port on which a service wants to listen later: name those in " \
	"net.ipv4.ip_local_reserved_ports first. tcp_tw_reuse=1 would be safe for the caller, " \
	"because TCP timestamps tell old segments from new; tcp_tw_recycle, which dropped clients " \
	"behind NAT, is gone since Linux 4.12"
#define MORE_PORTS \
	"keep connections alive and use them again; else connect from several source addresses, or " \
	"set IP_LOCAL_PORT_RANGE on the socket (Linux 6.3), or let the server close first"
#define MORE_FILES \
	"prlimit --pid PID --nofile=$(awk '/open files/ {print $5}' /proc/PID/limits):"
#define FILES_RISK \
	"programs that use select() fail above 1024; prlimit raises the soft limit to the hard one " \
	"until the process ends: where both are the same, raise LimitNOFILE= in its unit"

#define RAISE_SOMAXCONN \
	"sysctl -w net.core.somaxconn=$(( $(cat /proc/sys/net/core/somaxconn) * 4 ))"
#define LISTEN_AGAIN \
	"accept() sooner or in more threads; call listen() with a larger backlog. somaxconn only caps " \
	"it, when listen() is called: after raising it restart the service"

const struct rule diagnose_rules[] = {
	{"requests-hang", RESOURCE_REQUESTS, MEASURE_HANGS, 1, 3, NULL,
	 "requests wait, and the service has answered none for as long",
	 "clients wait until they time out; those that come meanwhile wait in their sockets, then in the "
	 "accept queue",
	 "cat /proc/PID/task/*/wchan; cat /proc/PID/task/*/stack",
	 "find what its threads wait for: a lock, a pool without a free connection, a silent backend or "
	 "client, a full disk; give every call to others a time limit",
	 "none: the command reads; a server that is to hold its requests (long polling) does so rightly"},
	{"services-unobserved", RESOURCE_SERVICES, MEASURE_EVENTS, 1, NEVER, NULL,
	 "services had connections that the observer did not see: other services had taken all of its slots",
	 "what they did is in no count; each gets a slot once one is free, and is observed from then on",
	 NULL,
	 "observe the services that matter by name (--port): those have slots of their own; or give the "
	 "observer more memory (--memory), or end what opens so many listeners: 'ss -ltnp' names it",
	 "each slot takes memory on every CPU: docs/operation.md says how much"},
	{"ports-failed", RESOURCE_PORT_FAILURES, MEASURE_EVENTS, 1, 1, NULL,
	 "connect() calls to this destination failed: no source port was left",
	 "EADDRNOTAVAIL (\"Cannot assign requested address\") until connections end or their "
	 "TIME_WAIT is over",
	 WIDEN_RANGE, MORE_PORTS, WIDEN_RISK},
	{"ports-exhausted", RESOURCE_PORTS, MEASURE_SHARE, .97, .97, NULL,
	 "connect() to this destination fails, or is about to: no source port is left",
	 "EADDRNOTAVAIL (\"Cannot assign requested address\") until connections end or their "
	 "TIME_WAIT is over",
	 WIDEN_RANGE, MORE_PORTS, WIDEN_RISK},
	{"ports-exhausted-soon", RESOURCE_PORTS, MEASURE_SECONDS_LEFT, 300, 30, "ports-exhausted",
	 "at this rate no source port will be left towards this destination", NULL,
	 WIDEN_RANGE, MORE_PORTS, WIDEN_RISK},
	{"ports-cliff", RESOURCE_PORTS, MEASURE_SHARE, .5, NEVER, "ports-exhausted",
	 "more than half of the ports towards this destination are used: plain connect() searches "
	 "all of the used half first and costs many times the CPU",
	 "whoever connects pays, and a load tool reports it as the server's latency",
	 WIDEN_RANGE,
	 "set IP_LOCAL_PORT_RANGE on the socket (Linux 6.3; from 6.8 on its search has no cliff), or "
	 "bind() explicit source ports, or use several source addresses, or keep connections alive",
	 WIDEN_RISK},
	{"fds-failed", RESOURCE_DESCRIPTOR_FAILURES, MEASURE_EVENTS, 1, 1, NULL,
	 "calls of this process failed: it had no descriptor left",
	 "EMFILE (\"Too many open files\"): accept() fails and connections wait in the accept queue",
	 MORE_FILES, "close what is not needed; raise the soft limit up to the hard one at start",
	 FILES_RISK},
	{"fds-exhausted", RESOURCE_DESCRIPTORS, MEASURE_SHARE, .98, .98, NULL,
	 "the process has no descriptor left, or is about to",
	 "EMFILE (\"Too many open files\"): accept() fails and connections wait in the accept queue",
	 MORE_FILES, "close what is not needed; raise the soft limit up to the hard one at start",
	 FILES_RISK},
	{"fds-exhausted-soon", RESOURCE_DESCRIPTORS, MEASURE_SECONDS_LEFT, 300, 30, "fds-exhausted",
	 "descriptors grow steadily: the limit will be reached", NULL,
	 MORE_FILES, "find what opens and does not close: the evidence lists their types",
	 FILES_RISK},
	{"fds-near-limit", RESOURCE_DESCRIPTORS, MEASURE_SHARE, .8, NEVER, "fds-exhausted",
	 "most of the process's descriptors are in use",
	 "at the limit accept(), open() and socket() fail with EMFILE",
	 MORE_FILES, "raise the soft limit up to the hard one at start", FILES_RISK},
	{"fds-growing", RESOURCE_DESCRIPTORS, MEASURE_LEAKING, 1, NEVER, "fds-exhausted-soon",
	 "the process opens descriptors and closes none", "a leak, if it goes on like this",
	 "ls -l /proc/PID/fd", "find what opens and does not close: the evidence lists their types",
	 "none: the command reads; a pool that is still filling looks the same, look again later"},
	{"file-max", RESOURCE_FILES, MEASURE_SHARE, .8, .95, NULL,
	 "the host's table of open files is nearly full",
	 "at the limit every process but root's gets ENFILE (\"Too many open files in system\")",
	 "sysctl -w fs.file-max=$(( $(cut -f3 /proc/sys/fs/file-nr) * 2 ))",
	 "find the process with most descriptors: sojourn doctor --json lists them",
	 "each open file takes kernel memory, about a quarter KiB and what it stands for"},
	{"files-failed", RESOURCE_FILE_FAILURES, MEASURE_EVENTS, 1, 1, NULL,
	 "calls of this process failed: the host's table of open files was full",
	 "every process but root's gets ENFILE (\"Too many open files in system\")",
	 "sysctl -w fs.file-max=$(( $(cut -f3 /proc/sys/fs/file-nr) * 2 ))",
	 "find the process with most descriptors: sojourn doctor --json lists them",
	 "each open file takes kernel memory, about a quarter KiB and what it stands for"},
	{"address-in-use", RESOURCE_ADDRESS_FAILURES, MEASURE_EVENTS, 1, NEVER, NULL,
	 "bind() or listen() failed: another socket has this address",
	 "EADDRINUSE (\"Address already in use\"); with port 0: no port of the range is free",
	 NULL, "set SO_REUSEADDR before bind(), where only TIME_WAIT is in the way; else end the "
	 "process that has it: 'ss -ltnp' names it",
	 "none"},
	{"accept-queue-overflowing", RESOURCE_ACCEPT_QUEUE, MEASURE_EVENTS, 1, 1, NULL,
	 "the listener drops connections", "clients wait for retransmissions: 1 s, 3 s, 7 s more",
	 RAISE_SOMAXCONN,
	 LISTEN_AGAIN,
	 "a longer queue hides a slow server: clients wait in it instead of being turned away"},
	{"accept-queue-full", RESOURCE_ACCEPT_QUEUE, MEASURE_SHARE, .75, 1, "accept-queue-overflowing",
	 "connections wait for accept(), and the queue's limit is near or reached",
	 "beyond the limit connections are dropped, and clients wait for retransmissions",
	 RAISE_SOMAXCONN,
	 LISTEN_AGAIN,
	 "a longer queue hides a slow server: clients wait in it instead of being turned away"},
	{"syn-drops", RESOURCE_SYN_QUEUE, MEASURE_EVENTS, 1, 1, NULL,
	 "SYNs to this listener are dropped: too many handshakes are unfinished",
	 "clients wait for retransmissions: 1 s, 3 s, 7 s more",
	 "sysctl -w net.ipv4.tcp_syncookies=1",
	 "call listen() with a larger backlog: it limits unfinished handshakes too, and without "
	 "cookies tcp_max_syn_backlog does",
	 "connections that come from cookies have no window scaling and no SACK unless timestamps "
	 "are on"},
	{"syn-backlog", RESOURCE_SYN_QUEUE, MEASURE_SHARE, .5, NEVER, "syn-drops",
	 "many handshakes of this listener are unfinished",
	 "at the limit SYNs are answered with cookies, or dropped where tcp_syncookies is 0",
	 "sysctl -w net.ipv4.tcp_syncookies=1",
	 "call listen() with a larger backlog: it limits unfinished handshakes too",
	 "connections that come from cookies have no window scaling and no SACK unless timestamps "
	 "are on"},
	/* Three more: one or two are a pool's connections that end one by one. */
	{"close-wait-leak", RESOURCE_CLOSE_WAIT, MEASURE_GROWN, 3, NEVER, NULL,
	 "connections that their peers have closed grow in number: the process does not close them",
	 "each holds a descriptor and a port until the process closes it; the kernel never will",
	 NULL, "close() the socket when read() returns 0; close response bodies in HTTP clients",
	 "none; 'ss -K' ends such sockets from outside, but the process keeps their descriptors"},
	{"close-wait-held", RESOURCE_CLOSE_WAIT, MEASURE_HELD, 5, NEVER, "close-wait-leak",
	 "connections that their peers have closed are still open; no steady growth was seen that would make it a leak",
	 "idle connections of a pool, or handlers at work for clients that left: each holds a "
	 "descriptor until the process closes it",
	 NULL,
	 "look again over a longer time ('--watch', '--sample 60s'): if the number grows, close() the "
	 "socket when read() returns 0",
	 "none"},
	/* Fewer than five are an upload or two that a program holds back on purpose. */
	{"unread-data", RESOURCE_UNREAD_DATA, MEASURE_USED, 5, NEVER, NULL,
	 "data has come on these connections, and the process does not read it",
	 "the peers' windows close and they wait until they time out; meanwhile the kernel keeps what "
	 "they sent",
	 "cat /proc/PID/task/*/wchan; cat /proc/PID/task/*/stack",
	 "read requests and responses to their end, or close() the connection; if the threads wait for "
	 "something else, give that a time limit",
	 "none: the command reads; a program that slows its peers down on purpose does so rightly"},
	/* Fewer than five are clients whose network went away, as it does. */
	{"closing-unsent", RESOURCE_CLOSING_DATA, MEASURE_USED, 5, NEVER, NULL,
	 "these connections are closed, and their peers do not take what they still have to send",
	 "the kernel keeps the data: for peers that vanished until tcp_orphan_retries are over, for peers "
	 "that acknowledge and do not read as long as they live",
	 "sysctl -w net.ipv4.tcp_orphan_retries=3",
	 "see that the peers read what they asked for, or reset (SO_LINGER with 0) those that do not; "
	 "TCP_USER_TIMEOUT limits the wait; 'ss -K' ends such connections",
	 "peers on bad links get less time for the last bytes; peers that acknowledge stay"},
	/* Fewer than five are checks of a load balancer that a busy thread has yet to meet. */
	{"dead-in-accept-queue", RESOURCE_DEAD_QUEUED, MEASURE_USED, 5, NEVER, NULL,
	 "clients connected, waited for accept() and have left; their connections are still queued",
	 "the server will accept and serve them for nobody, while those after them wait",
	 "cat /proc/PID/task/*/wchan; cat /proc/PID/task/*/stack",
	 "accept() sooner or in more threads; find what the accepting thread waits for",
	 "none: the command reads"},
	{"time-wait-buckets", RESOURCE_TIME_WAIT, MEASURE_SHARE, .8, 1, NULL,
	 "the namespace keeps nearly as many sockets in TIME_WAIT as it may",
	 "above the limit connections end without TIME_WAIT: late segments may reach a new one",
	 "sysctl -w net.ipv4.tcp_max_tw_buckets=$(( $(cat /proc/sys/net/ipv4/tcp_max_tw_buckets) * 2 ))",
	 "keep connections alive and use them again", "each takes about a quarter KiB of memory"},
	{"orphans", RESOURCE_ORPHANS, MEASURE_SHARE, .5, .9, NULL,
	 "many sockets were closed with data or a FIN unacknowledged",
	 "above the limit the kernel resets them: their peers lose the end of the response",
	 "sysctl -w net.ipv4.tcp_orphan_retries=3",
	 "close connections after the peer has read the response; find peers that vanish, which the "
	 "command is for: one that acknowledges and does not read keeps its orphan ('ss -K' ends it)",
	 "peers on bad links get less time for the last bytes"},
	{"tcp-memory", RESOURCE_TCP_MEMORY, MEASURE_SHARE, .75, .95, NULL,
	 "TCP uses most of the memory that it may",
	 "the kernel shrinks windows first, then drops segments and aborts connections",
	 "sysctl -w net.ipv4.tcp_mem=\"$(awk '{print $1*2, $2*2, $3*2}' /proc/sys/net/ipv4/tcp_mem)\"",
	 "read what has arrived; bound the buffers with SO_RCVBUF and SO_SNDBUF",
	 "the memory is not swappable: other programs lose it"},
	{"conntrack", RESOURCE_CONNTRACK, MEASURE_SHARE, .8, .95, NULL,
	 "the table of tracked connections is nearly full",
	 "at the limit packets of new connections are dropped (\"nf_conntrack: table full\")",
	 "sysctl -w net.netfilter.nf_conntrack_max=$(( "
	 "$(cat /proc/sys/net/netfilter/nf_conntrack_max) * 2 ))",
	 "exempt the traffic from tracking with the NOTRACK target",
	 "each entry takes about a third of a KiB; without tracking there is no NAT"},
	{"udp-drops", RESOURCE_UDP_BUFFER, MEASURE_EVENTS, 1, NEVER, NULL,
	 "datagrams are dropped because the socket's receive buffer is full",
	 "as long as datagrams come faster than they are read, they are lost",
	 NULL,
	 "read faster (recvmmsg(), more threads with SO_REUSEPORT); set a larger SO_RCVBUF, which "
	 "net.core.rmem_max caps; a program that sets none has the net.core.rmem_default of the time when "
	 "it made its socket",
	 "a longer buffer means older datagrams"},
};
/* clang-format on */

const size_t diagnose_rule_count = ARRAY_SIZE(diagnose_rules);
