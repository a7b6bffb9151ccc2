/* SPDX-License-Identifier: MIT */
/* Tells that this process does now what it was started for. */
#ifndef OBSERVER_PROCESS_NOTIFY_H
#define OBSERVER_PROCESS_NOTIFY_H

/*
 * Connects to the service manager that named $NOTIFY_SOCKET, such as systemd: sd_notify(3). The descriptor; -1: there
 * is none, or it cannot be reached, which is said. Another user might not reach it: before confine().
 */
int notify_open(void);

/* Print on standard error where it listens (@url, NULL: nowhere), and notify the manager at @fd (-1: none). */
void notify_ready(int fd, const char *url);

#endif
