/* SPDX-License-Identifier: MIT */
/*
 * The token by which an observer on loopback recognises its own user. The observer writes a file
 * that only this user and root can read; their drivers find it by the port. Other users of the host
 * may only read what the observer serves.
 *
 * The file is PORT-NETNS.token (NETNS: inode of the network namespace, which has ports of its own).
 * Its folder is root's /run/sojourn, the systemd unit's /run/sojourn-serve, or
 * /run/user/UID/sojourn; without that, /tmp/sojourn-UID.
 */
#ifndef SOJOURN_OWN_TOKEN_H
#define SOJOURN_OWN_TOKEN_H

#include <stdint.h>

/* 128 bits, in hexadecimal. */
#define OWN_TOKEN_LENGTH 32

struct own_token {
	char text[OWN_TOKEN_LENGTH + 1];
	char *path; /* NULL: no file */
};

/*
 * Make a token for the endpoint at @port of the current network namespace, replacing an older one.
 * A service manager's $RUNTIME_DIRECTORY sets the folder. 0, or -errno if the file could not be
 * written: then nobody knows the token.
 */
int own_token_make(struct own_token *token, uint16_t port);

void own_token_drop(struct own_token *token);

/*
 * Return the token of the endpoint at @port of the current network namespace, freed by the caller.
 * -ENOENT: none; -EACCES: another user's; other -errno.
 */
int own_token_find(uint16_t port, char **ret_token);

#endif
