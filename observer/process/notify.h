/* SPDX-License-Identifier: MIT */
/* Tells that this process does now what it was started for. */
#ifndef OBSERVER_PROCESS_NOTIFY_H
#define OBSERVER_PROCESS_NOTIFY_H

/*
 * Report the listening address (@url, NULL: none) to the user on standard error. Report readiness to the service
 * manager that named $NOTIFY_SOCKET, such as systemd: sd_notify(3). Its failure is logged.
 */
void notify_ready(const char *url);

#endif
