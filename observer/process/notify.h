/* SPDX-License-Identifier: MIT */
/* Tells that this process does now what it was started for. */
#ifndef OBSERVER_PROCESS_NOTIFY_H
#define OBSERVER_PROCESS_NOTIFY_H

/*
 * Tells the user, on standard error, where it listens (@url, NULL: nowhere), and the service manager that
 * named $NOTIFY_SOCKET, such as systemd: sd_notify(3). That one could not be told is said.
 */
void notify_ready(const char *url);

#endif
