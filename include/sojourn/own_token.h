/* SPDX-License-Identifier: MIT */
/*
 * The token by which an observer on loopback recognises its own user. The observer writes a file
 * that only this user and root can read; their drivers find it by the port. Other users of the host
 * may only read what the observer serves.
 *
 * The file is PORT-NETNS.token; NETNS is the inode of the network namespace, whose ports are its
 * own. Its folder is:
 *
 * - /run/sojourn for root, and /run/sojourn-serve for the systemd unit;
 * - /run/sojourn/UID for root that becomes user UID, who can remove the file there but not read it;
 * - /run/user/UID/sojourn for others, or /tmp/sojourn-UID without a /run/user/UID.
 */
#ifndef SOJOURN_OWN_TOKEN_H
#define SOJOURN_OWN_TOKEN_H

#include <stdint.h>
#include <sys/types.h>

#include "sojourn/secret.h"

struct own_token {
	char text[SECRET_LENGTH + 1];
	char *path; /* NULL: no file */
};

/*
 * Make a token for the endpoint at @port of the current network namespace, replacing an older one
 * there. A service manager sets the folder by $RUNTIME_DIRECTORY. @user will remove the file. 0 or
 * -errno: the file could not be written, and no driver knows the token.
 */
int own_token_make(struct own_token *token, uint16_t port, uid_t user);

void own_token_drop(struct own_token *token);

/*
 * Return the token of the endpoint at @port of the current network namespace, freed by the caller.
 * -ENOENT: none; -EACCES: another user's; other -errno.
 */
int own_token_find(uint16_t port, char **ret_token);

#endif
