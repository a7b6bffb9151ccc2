/* SPDX-License-Identifier: MIT */
/* What was running out on the observer's host, as the run document has it: docs/diagnoses.md. */
#ifndef SOJOURN_FINDING_H
#define SOJOURN_FINDING_H

#include "sojourn/run.h"

struct run_owner {
	uint32_t pid;
	char comm[16];
	char unit[64];		   /* cgroup of its service or container; "" if none names one */
	struct run_number sockets; /* of the resource, that it holds */
	char did[96]; /* in the period, as events tell: "12 connect() calls of 70 µs"; "": not known */
};

/*
 * What was running out on the observer's host at the period's end: docs/diagnoses.md. The document's
 * `resources` are of the same structure, and have nothing of what a rule says: neither id nor texts.
 */
struct run_finding {
	char *host;	     /* whose, where the document is of several; else NULL */
	char id[32];	     /* also its section there */
	char severity[16];   /* "notice", "warning", "critical" */
	char resource[32];   /* kind: "ephemeral_ports", "descriptors", … */
	char object[128];    /* which one: "10.0.0.1 to 10.0.0.2:80", "nginx (pid 812)" */
	uint16_t port;	     /* destination or listening port; 0: none */
	uint32_t netns;	     /* inode number; 0: the host's */
	char netns_name[64]; /* "": it has none, as our own */
	struct run_number used;
	struct run_number capacity;
	struct run_number ends_in_ns;	   /* until none is left, as the period's rate predicts */
	struct run_number growth_per_hour; /* of resources alone, as is: */
	struct run_number deepest;	   /* of an accept queue since the watch began */
	char *what;
	char **evidence; /* "connected: 260 ports (TCP sockets, inet_diag)" each */
	char *outlook;	 /* may be NULL, as may the rest */
	char *command;	 /* exactly what to type */
	char *change;
	char *risk;
	char *link;
	struct run_owner *owners;
	size_t owner_count;
};

/* What a look of the doctor took. */
struct run_look {
	uint32_t namespaces;	   /* network namespaces */
	uint64_t sockets;	   /* of both readings */
	uint32_t descriptor_walks; /* over /proc/PID/fd of all processes */
	uint64_t cpu_ns;	   /* CPU time of the look itself */
};

/* Appends one zeroed finding or resource, or one owner to @finding; NULL without memory. */
struct run_finding *run_add_finding(struct run *run);
struct run_finding *run_add_resource(struct run *run);
struct run_owner *run_add_owner(struct run_finding *finding);
/* Appends a copy of @text to a NULL-terminated list, which may be NULL. 0 or -ENOMEM. */
int run_add_text(char ***list, const char *text);
/* A copy of such a list, which is not NULL; NULL without memory. */
char **run_strings_copy(char *const *strings);
/* Frees such a list. */
void run_strings_free(char **strings);

#endif
