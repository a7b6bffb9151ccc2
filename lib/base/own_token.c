// SPDX-License-Identifier: MIT
/* The place of the token file, and the conditions for trusting it; see own_token.h. */
#include "sojourn/own_token.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sojourn/cleanup.h"
#include "sojourn/secret.h"
#include "sojourn/text.h"

#define ROOT_FOLDER "/run/sojourn"

/* Root's folder, and that of packaging/sojourn.service, owned by the service's user. */
static const char *const system_folders[] = {ROOT_FOLDER, "/run/sojourn-serve"};

static int user_folder(char **ret_folder)
{
	autofree char *home = text_format("/run/user/%u", (unsigned int)geteuid());

	if (!home)
		return -ENOMEM;
	*ret_folder = access(home, X_OK) ? text_format("/tmp/sojourn-%u", (unsigned int)geteuid())
					 : text_format("%s/sojourn", home);
	return *ret_folder ? 0 : -ENOMEM;
}

/* Return $RUNTIME_DIRECTORY, which a service manager has made, or else the default folder. */
static int own_folder(char **ret_folder)
{
	const char *given = getenv("RUNTIME_DIRECTORY");

	if (geteuid() && !given)
		return user_folder(ret_folder);
	*ret_folder = strdup(given ? given : ROOT_FOLDER);
	return *ret_folder ? 0 : -ENOMEM;
}

static int path_in(const char *folder, uint16_t port, char **ret_path)
{
	struct stat netns;

	if (stat("/proc/self/ns/net", &netns))
		return -errno;
	*ret_path = text_format("%s/%u-%ju.token", folder, port, (uintmax_t)netns.st_ino);
	return *ret_path ? 0 : -ENOMEM;
}

/* Make @folder for @user. -EPERM if others own it or may write to it, as can happen in /tmp. */
static int make_folder(const char *folder, uid_t user)
{
	struct stat made;

	if (mkdir(folder, geteuid() ? 0700 : 0755) && errno != EEXIST)
		return -errno;
	if (lstat(folder, &made))
		return -errno;
	if (!S_ISDIR(made.st_mode) || made.st_mode & 022)
		return -EPERM;
	if (made.st_uid == geteuid() && user != geteuid())
		return chown(folder, user, (gid_t)-1) ? -errno : 0;
	return made.st_uid == user ? 0 : -EPERM;
}

/*
 * Find token files in the folders of users to which root's observers have changed. -ENOENT: none.
 */
static int users_files(const char *folder, uint16_t port, glob_t *ret_files)
{
	autofree char *folders = text_format("%s/[0-9]*", folder), *pattern = NULL;
	int r = folders ? path_in(folders, port, &pattern) : -ENOMEM;

	if (r)
		return r;
	return glob(pattern, GLOB_NOSORT, NULL, ret_files) ? -ENOENT : 0;
}

/* Replace a killed observer's file: this observer has the port now. */
static int drop_older(const char *folder, uint16_t port)
{
	CLEANUP(globfree) glob_t files = {0};
	autofree char *path = NULL;
	int r = path_in(folder, port, &path);

	if (r)
		return r;
	(void)users_files(folder, port, &files);
	for (size_t i = 0; i < files.gl_pathc; i++)
		unlink(files.gl_pathv[i]);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

static int write_file(const char *path, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return dprintf(fd, "%s\n", text) == SECRET_LENGTH + 1 ? 0 : -EIO;
}

static int make_file(const char *folder, uint16_t port, struct own_token *token)
{
	autofree char *path = NULL;
	int r = path_in(folder, port, &path);

	if (!r)
		r = write_file(path, token->text);
	if (!r)
		token->path = TAKE_PTR(path);
	return r;
}

/* Make the file in @user's own folder, which lies within @folder of this process. */
static int make_users_file(const char *folder, uid_t user, uint16_t port, struct own_token *token)
{
	autofree char *users = text_format("%s/%u", folder, (unsigned int)user);
	int r = users ? make_folder(users, user) : -ENOMEM;

	return r ? r : make_file(users, port, token);
}

int own_token_make(struct own_token *token, uint16_t port, uid_t user)
{
	bool given = user != geteuid();
	autofree char *folder = NULL;
	int r = secret_make(token->text);

	if (!r)
		r = own_folder(&folder);
	if (!r)
		r = make_folder(folder, geteuid());
	if (!r)
		r = drop_older(folder, port);
	if (!r && given)
		r = make_users_file(folder, user, port, token);
	/*
	 * Without CAP_CHOWN, as in a container, root uses its own folder. @user cannot remove the
	 * file there, but the next observer at this port will.
	 */
	if (given ? r == -EPERM || r == -EACCES : !r)
		r = make_file(folder, port, token);
	return r;
}

void own_token_drop(struct own_token *token)
{
	if (token->path)
		unlink(token->path);
	free(token->path);
	*token = (struct own_token){};
}

/*
 * Trust every file in a system folder, which only root can make. Elsewhere, with @owned, trust only
 * files of this user or root.
 */
static int read_file(const char *path, bool owned, char **ret_token)
{
	char text[SECRET_LENGTH + 2] = "";
	autoclose int fd = -1;
	struct stat found;

	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &found))
		return -errno;
	if (!S_ISREG(found.st_mode) || (owned && found.st_uid != geteuid() && found.st_uid))
		return -EPERM;
	if (read(fd, text, SECRET_LENGTH + 1) != SECRET_LENGTH + 1 ||
	    strspn(text, "0123456789abcdef") != SECRET_LENGTH)
		return -EINVAL;
	*ret_token = strndup(text, SECRET_LENGTH);
	return *ret_token ? 0 : -ENOMEM;
}

static int find_in(const char *folder, bool owned, uint16_t port, char **ret_token)
{
	autofree char *path = NULL;
	int r = path_in(folder, port, &path);

	return r ? r : read_file(path, owned, ret_token);
}

static int find_in_users(const char *folder, uint16_t port, char **ret_token)
{
	CLEANUP(globfree) glob_t found = {0};
	int r = users_files(folder, port, &found);

	for (size_t i = 0; i < found.gl_pathc; i++) {
		r = read_file(found.gl_pathv[i], true, ret_token);
		if (!r)
			break;
	}
	return r;
}

int own_token_find(uint16_t port, char **ret_token)
{
	autofree char *folder = NULL;
	int r = user_folder(&folder);

	if (!r)
		r = find_in(folder, true, port, ret_token);
	for (size_t i = 0; r && i < ARRAY_SIZE(system_folders); i++) {
		int found = find_in(system_folders[i], false, port, ret_token);

		if (found == -ENOENT)
			found = find_in_users(system_folders[i], port, ret_token);
		/* "Another user's" is more informative than "not here". */
		if (found != -ENOENT)
			r = found;
	}
	return r;
}
