/* SPDX-License-Identifier: MIT */
/* Exhausted or scarce resources on the observer's host, in the run document: docs/diagnoses.md. */
#ifndef SOJOURN_FINDING_H
#define SOJOURN_FINDING_H

#include "sojourn/run.h"

struct run_owner {
	uint32_t pid;
	char comm[16];
	char unit[64];		   /* cgroup of its service or container; "": none */
	struct run_number sockets; /* sockets of the resource that it holds */
	char did[96]; /* in the period, by events: "12 connect() calls, mean 70 µs"; "": not known */
};

/*
 * A resource that was running out at the period's end: docs/diagnoses.md. The document's
 * `resources` have the same structure, without a rule's id and texts.
 */
struct run_finding {
	char *host;	     /* in a document of several hosts; otherwise NULL */
	char id[32];	     /* also its section in docs/diagnoses.md */
	char severity[16];   /* "notice", "warning", "critical" */
	char resource[32];   /* kind: "ephemeral_ports", "descriptors", … */
	char object[128];    /* name: "10.0.0.1 to 10.0.0.2:80", "nginx (pid 812)" */
	uint16_t port;	     /* destination or listening port; 0: none */
	uint32_t netns;	     /* inode number; 0: the host's */
	char netns_name[64]; /* "": unnamed, like our own */
	struct run_number used;
	struct run_number capacity;
	struct run_number ends_in_ns;	   /* until none is left, at the period's rate */
	struct run_number growth_per_hour; /* resources only, as is the next: */
	struct run_number deepest;	   /* of an accept queue since the watch started */
	char *what;
	char **evidence; /* each like "connected: 260 ports (TCP sockets, inet_diag)" */
	char *outlook;	 /* may be NULL, like the following */
	char *command;	 /* exactly as typed */
	char *change;
	char *risk;
	char *link;
	struct run_owner *owners;
	size_t owner_count;
};

/* The cost of a look of the doctor. */
struct run_look {
	uint32_t namespaces;	   /* network namespaces */
	uint64_t sockets;	   /* in both readings */
	uint32_t descriptor_walks; /* over /proc/PID/fd of all processes */
	uint64_t cpu_ns;	   /* CPU time of the look itself */
};

/* Append a copy of @text to a NULL-terminated list, which may be NULL. 0 or -ENOMEM. */
int run_add_text(char ***list, const char *text);
/* The same, unless the list has it. */
int run_add_text_once(char ***list, const char *text);
/* Return a copy of such a list, which is not NULL; NULL without memory. */
char **run_strings_copy(char *const *strings);
void run_strings_free(char **strings);

#endif
