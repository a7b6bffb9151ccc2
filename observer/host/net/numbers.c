// SPDX-License-Identifier: MIT
/* Reads counters and sysctls by a table; see numbers.h. */
#include "numbers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"

#define IPV4	  "/proc/sys/net/ipv4/"
#define NETFILTER "/proc/sys/net/netfilter/"
#define SOCKSTAT  "/proc/self/net/sockstat"
#define NETSTAT	  "/proc/self/net/netstat"
#define SNMP	  "/proc/self/net/snmp"

enum shape {
	WORD,	/* the column-th word of the file */
	NAMED,	/* "TCP: inuse 4 orphan 0": the word after its name, in the line with the label */
	COLUMN, /* "TcpExt: A B" over "TcpExt: 1 2": below its name */
};

/* clang-format off */
static const struct row {
	const char *path;
	enum shape shape;
	const char *label;
	const char *name;
	unsigned int column;
	const char *source;
} rows[] = {
	[NUMBER_TIME_WAIT] = {SOCKSTAT, NAMED, "TCP:", "tw", 0, "TCP tw in /proc/net/sockstat"},
	[NUMBER_ORPHANS] = {SOCKSTAT, NAMED, "TCP:", "orphan", 0, "TCP orphan in /proc/net/sockstat"},
	[NUMBER_TCP_PAGES] = {SOCKSTAT, NAMED, "TCP:", "mem", 0, "TCP mem in /proc/net/sockstat"},
	[NUMBER_TCP_HASHED] = {SOCKSTAT, NAMED, "TCP:", "inuse", 0, "TCP inuse in /proc/net/sockstat"},
	[NUMBER_TCP_ALLOCATED] = {SOCKSTAT, NAMED, "TCP:", "alloc", 0,
		"TCP alloc in /proc/net/sockstat"},
	[NUMBER_TCP6_HASHED] = {SOCKSTAT "6", NAMED, "TCP6:", "inuse", 0,
		"TCP6 inuse in /proc/net/sockstat6"},
	[NUMBER_LISTEN_OVERFLOWS] = {NETSTAT, COLUMN, "TcpExt:", "ListenOverflows", 0,
		"TcpExt ListenOverflows in /proc/net/netstat"},
	[NUMBER_LISTEN_DROPS] = {NETSTAT, COLUMN, "TcpExt:", "ListenDrops", 0,
		"TcpExt ListenDrops in /proc/net/netstat"},
	[NUMBER_DEFERRED] = {NETSTAT, COLUMN, "TcpExt:", "TCPDeferAcceptDrop", 0,
		"TcpExt TCPDeferAcceptDrop in /proc/net/netstat"},
	[NUMBER_TIME_WAIT_OVERFLOW] = {NETSTAT, COLUMN, "TcpExt:", "TCPTimeWaitOverflow", 0,
		"TcpExt TCPTimeWaitOverflow in /proc/net/netstat"},
	[NUMBER_SYN_COOKIES] = {NETSTAT, COLUMN, "TcpExt:", "TCPReqQFullDoCookies", 0,
		"TcpExt TCPReqQFullDoCookies in /proc/net/netstat"},
	[NUMBER_SYN_DROPS] = {NETSTAT, COLUMN, "TcpExt:", "TCPReqQFullDrop", 0,
		"TcpExt TCPReqQFullDrop in /proc/net/netstat"},
	[NUMBER_ABORT_ON_MEMORY] = {NETSTAT, COLUMN, "TcpExt:", "TCPAbortOnMemory", 0,
		"TcpExt TCPAbortOnMemory in /proc/net/netstat"},
	[NUMBER_UDP_BUFFER_ERRORS] = {SNMP, COLUMN, "Udp:", "RcvbufErrors", 0,
		"Udp RcvbufErrors in /proc/net/snmp"},
	[NUMBER_TIME_WAIT_MAX] = {IPV4 "tcp_max_tw_buckets", WORD, NULL, NULL, 0,
		"net.ipv4.tcp_max_tw_buckets"},
	[NUMBER_ORPHANS_MAX] = {IPV4 "tcp_max_orphans", WORD, NULL, NULL, 0,
		"net.ipv4.tcp_max_orphans"},
	[NUMBER_TCP_PAGES_PRESSURE] = {IPV4 "tcp_mem", WORD, NULL, NULL, 1, "net.ipv4.tcp_mem"},
	[NUMBER_TCP_PAGES_MAX] = {IPV4 "tcp_mem", WORD, NULL, NULL, 2, "net.ipv4.tcp_mem"},
	[NUMBER_SYN_BACKLOG_MAX] = {IPV4 "tcp_max_syn_backlog", WORD, NULL, NULL, 0,
		"net.ipv4.tcp_max_syn_backlog"},
	[NUMBER_SYNCOOKIES] = {IPV4 "tcp_syncookies", WORD, NULL, NULL, 0, "net.ipv4.tcp_syncookies"},
	[NUMBER_SOMAXCONN] = {"/proc/sys/net/core/somaxconn", WORD, NULL, NULL, 0,
		"net.core.somaxconn"},
	[NUMBER_CONNTRACK] = {NETFILTER "nf_conntrack_count", WORD, NULL, NULL, 0,
		"net.netfilter.nf_conntrack_count"},
	[NUMBER_CONNTRACK_MAX] = {NETFILTER "nf_conntrack_max", WORD, NULL, NULL, 0,
		"net.netfilter.nf_conntrack_max"},
	[NUMBER_FILES] = {"/proc/sys/fs/file-nr", WORD, NULL, NULL, 0, "fs.file-nr"},
	[NUMBER_FILES_MAX] = {"/proc/sys/fs/file-nr", WORD, NULL, NULL, 2, "fs.file-max"},
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(rows) == NUMBER_COUNT, "one row per number");

const char *numbers_source(enum resource_number number)
{
	return rows[number].source;
}

/* Return the @index-th word after @text within its line; NULL at the line's end. */
static const char *word_at(const char *text, unsigned int index)
{
	text += strspn(text, " \t");
	for (; index && *text && *text != '\n'; index--) {
		text += strcspn(text, " \t\n");
		text += strspn(text, " \t");
	}
	return index || !*text || *text == '\n' ? NULL : text;
}

/* Return the text after @label in the line that begins with it; @nth: how many such lines to skip. */
static const char *line_of(const char *text, const char *label, unsigned int nth)
{
	while (text && *text) {
		if (!strncmp(text, label, strlen(label)) && !nth--)
			return text + strlen(label);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return NULL;
}

static bool is_word(const char *word, const char *name)
{
	return !strncmp(word, name, strlen(name)) && strchr(" \t\n", word[strlen(name)]);
}

static const char *find_named(const char *text, const struct row *row)
{
	const char *line = line_of(text, row->label, 0), *word;

	for (unsigned int i = 0; line && (word = word_at(line, i)); i++) {
		if (is_word(word, row->name))
			return word_at(line, i + 1);
	}
	return NULL;
}

static const char *find_column(const char *text, const struct row *row)
{
	const char *names = line_of(text, row->label, 0), *values = line_of(text, row->label, 1);
	const char *word;

	for (unsigned int i = 0; names && values && (word = word_at(names, i)); i++) {
		if (is_word(word, row->name))
			return word_at(values, i);
	}
	return NULL;
}

static struct run_number extract(const char *text, const struct row *row)
{
	const char *word = row->shape == WORD	 ? word_at(text, row->column)
			   : row->shape == NAMED ? find_named(text, row)
						 : find_column(text, row);
	unsigned long long value;

	if (!word || sscanf(word, "%llu", &value) != 1)
		return (struct run_number){};
	return (struct run_number){true, value};
}

struct run_number numbers_one(enum resource_number number)
{
	char text[16384] = "";

	return procfs_read(procfs_open("%s", rows[number].path), text, sizeof(text)) < 0
		       ? (struct run_number){}
		       : extract(text, &rows[number]);
}

void numbers_read(struct resource_numbers *ret_numbers)
{
	const char *path = "";
	char text[16384] = "";

	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		/* Rows of one file are neighbours: it is read once. */
		if (strcmp(path, rows[i].path)) {
			path = rows[i].path;
			if (procfs_read(procfs_open("%s", path), text, sizeof(text)) < 0)
				text[0] = 0;
		}
		ret_numbers->of[i] = extract(text, &rows[i]);
	}
}

static unsigned int read_sysctl(const char *path, unsigned int missing)
{
	char text[64];
	unsigned int value;

	if (procfs_read(procfs_open("%s", path), text, sizeof(text)) < 0 ||
	    sscanf(text, "%u", &value) != 1)
		return missing;
	return value;
}

int numbers_rules(struct port_rules *ret_rules)
{
	struct port_rules rules = {};
	unsigned int low, high;
	char text[16384];
	int r = procfs_read(procfs_open(IPV4 "ip_local_port_range"), text, sizeof(text));

	if (r < 0)
		return r;
	if (sscanf(text, "%u %u", &low, &high) != 2 || low > high || high >= PORT_COUNT)
		return -EPROTO;
	rules.low = (uint16_t)low;
	rules.high = (uint16_t)high;
	rules.reuse = read_sysctl(IPV4 "tcp_tw_reuse", 0);
	/* Fixed at a second until 6.14 (ca6a6f93867a). */
	rules.reuse_delay_ms = read_sysctl(IPV4 "tcp_tw_reuse_delay", 1000);
	rules.timestamps = read_sysctl(IPV4 "tcp_timestamps", 1);
	if (procfs_read(procfs_open(IPV4 "ip_local_reserved_ports"), text, sizeof(text)) >= 0)
		r = ports_parse(text, rules.reserved);
	if (r >= 0)
		*ret_rules = rules;
	return r < 0 ? r : 0;
}
