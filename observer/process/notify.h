/* SPDX-License-Identifier: MIT */
/* Notifies that this process is ready. */
#ifndef OBSERVER_PROCESS_NOTIFY_H
#define OBSERVER_PROCESS_NOTIFY_H

/*
 * Connect to the service manager of $NOTIFY_SOCKET, such as systemd: sd_notify(3). Return the
 * descriptor; -1: there is none, or it cannot be reached, which is logged. Call it before
 * confine(), as another user might not reach it.
 */
int notify_open(void);

/* Notify the manager at @fd (-1: none), and print on standard error the @url listened on (NULL: none). */
void notify_ready(int fd, const char *url);

#endif
