/* SPDX-License-Identifier: MIT */
/* The command lines of `sojourn observe`, `live`, `serve`, `record` and `probe`. */
#ifndef OBSERVER_OPTIONS_OPTIONS_H
#define OBSERVER_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sinks/otlp/sink.h"
#include "sinks/http/http.h"
#include "wire/config.h"
#include "wire/route.h"

#define OPTIONS_PORTS  64
#define OPTIONS_PREFER 8

/* Default of --quiet-time: a pause this long ends a response, or a message without one. */
#define OPTIONS_QUIET_NS 200000000ULL
#define OPTIONS_RING_KIB 4096

struct observe_port {
	uint16_t port;
	uint16_t protocol;    /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t first, last; /* the range that it was given in, or the port itself */
};

struct observe_options {
	struct observe_port ports[OPTIONS_PORTS];
	size_t port_count;
	bool udp; /* one of them is UDP */
	uint32_t pid;
	bool all_listeners;
	const char *netns; /* name or path; NULL: our own, or that of the named process or pod */
	bool all_netns;
	const char *container; /* number or name; NULL: not given */
	const char *pod;       /* NAMESPACE/NAME; NULL: not given */
	uint64_t interval_ns;  /* 0: no interval reports */
	uint64_t for_ns;       /* 0: until stopped */
	uint64_t quiet_ns;     /* default OPTIONS_QUIET_NS */
	const char *json;      /* file or "-"; NULL: none */
	bool listen;
	struct sockaddr_storage address;
	struct sink_http_access access; /* its texts live as long as the process */
	const char *user;		/* the user that root changes to; NULL: the default one */
	bool open_to_all;		/* neither TLS nor a token is needed beyond loopback */
	struct otlp_target otlp;	/* its url is NULL: nothing is sent */
	enum accept_source accept_source;
	const char *prefer[OPTIONS_PREFER]; /* names that kernel/plan.h knows */
	size_t prefer_count;
	uint64_t transmit_below; /* of 2^32 exchanges, the number followed until acked; 0: none */
	bool cpu;
	bool calls;
	bool http; /* also with routes and with tls */
	bool no_http2;
	bool propose_routes;
	bool tls;
	const char *routes[ROUTES_MOST]; /* as kernel/tables/route.h parses them */
	uint32_t route_rows;		 /* one more, for requests of no route; 0: there are none */
	struct command_port protocols[COMMAND_PORTS]; /* as kernel/tables/commands.h parses them */
	uint32_t protocol_count;
	const char *cgroup; /* directory; NULL: not given */
	bool run_statistics;
	uint32_t samples;  /* maximum of sampled exchanges of a service in a period; 0: none */
	uint32_t ring_kib; /* size of the ring that they come through */
	uint64_t memory;   /* memory that the observer may take; 0: by the cgroup and the host */
	uint32_t cpus;	   /* pretend this number of possible CPUs; 0: the real one */
	bool floor;
	bool no_doctor;
	bool quiet;
	bool verbose;		   /* the whole report */
	bool debug;		   /* libbpf's messages, too */
	char **command;		   /* NULL: none */
	bool live;		   /* on the terminal, until it is left */
	const char *replay;	   /* live: a recording to play instead of observing; NULL: none */
	const char *record;	   /* file of readings; NULL: none */
	uint64_t record_max_bytes; /* of that file; 0: any */
};

struct probe_options {
	bool json;
	bool cost;
};

/* 0; -ECANCELED: help was printed; -EINVAL: an error was printed. */
int options_parse_observe(int argc, char **argv, struct observe_options *ret_options);
/* `sojourn live`: every listener by default. */
int options_parse_live(int argc, char **argv, struct observe_options *ret_options);
/* `sojourn serve`: every listener by default, and the endpoint. */
int options_parse_serve(int argc, char **argv, struct observe_options *ret_options);
/* `sojourn record`: every listener by default, and a file. */
int options_parse_record(int argc, char **argv, struct observe_options *ret_options);
int options_parse_probe(int argc, char **argv, struct probe_options *ret_options);

/*
 * Return whether findings on services of ordinary users are as severe as others: if an option names
 * them, or a namespace.
 */
static inline bool options_count_users(const struct observe_options *options)
{
	return !options->all_listeners || options->netns;
}

/*
 * Return whether --cgroup, --container or --pod selects what is observed. With --transmit and another target, --cgroup
 * only selects the sockets that make timestamps.
 */
static inline bool options_names_cgroup(const struct observe_options *options)
{
	bool other = options->port_count || options->pid || options->all_listeners;

	return options->container || options->pod ||
	       (options->cgroup && !(options->transmit_below && other));
}

/* As on the command line: "auto", "accept", "syscall" or "inferred". */
const char *options_accept_source(enum accept_source source);

#endif
