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
};

/* What was running out on the observer's host at the period's end: docs/diagnoses.md. */
struct run_finding {
	char *host;	   /* whose, where the document is of several; else NULL */
	char id[32];	   /* also its section there */
	char severity[16]; /* "warning", "critical" */
	char resource[32]; /* kind: "ephemeral_ports", "descriptors", … */
	char object[128];  /* which one: "10.0.0.1 to 10.0.0.2:80", "nginx (pid 812)" */
	uint16_t port;	   /* destination or listening port; 0: none */
	uint32_t netns;	   /* inode number; 0: the host's */
	struct run_number used;
	struct run_number capacity;
	struct run_number ends_in_ns; /* until none is left, as the period's rate predicts */
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

/* Appends one zeroed finding, or one owner to @finding; NULL without memory. */
struct run_finding *run_add_finding(struct run *run);
struct run_owner *run_add_owner(struct run_finding *finding);
/* Appends a copy of @text to a NULL-terminated list, which may be NULL. 0 or -ENOMEM. */
int run_add_text(char ***list, const char *text);

#endif
