// SPDX-License-Identifier: MIT
/* The run document in files; read.c and write.c handle its text. */
#include "sojourn/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "run/members.h"
#include "sojourn/ending.h"
#include "sojourn/text.h"
#include "sojourn/write_all.h"

/*
 * A file's content: a text, a document, or the content of another file. A document is printed
 * directly, to save the memory of its text.
 */
struct content {
	const char *text;
	const struct run *run;
	int fd; /* without text and run */
};

static int copy_all(int fd, int from)
{
	char bytes[1 << 16];
	ssize_t count = 0;
	int err = 0;

	for (off_t at = 0; !err && (count = pread(from, bytes, sizeof(bytes), at)) > 0; at += count)
		err = write_all(fd, bytes, (size_t)count, NULL);
	return count < 0 ? -errno : err;
}

static int write_content(int fd, const struct content *content)
{
	FILE *file;
	int err, copy;

	if (content->text)
		return write_all(fd, content->text, strlen(content->text), NULL);
	if (!content->run)
		return copy_all(fd, content->fd);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file = copy < 0 ? NULL : fdopen(copy, "w");
	if (!file) {
		err = -errno;
		cleanup_close(&copy);
		return err;
	}
	err = run_print_json(content->run, file);
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

/* Create a file next to @path under an unused name; umask applies. */
static int create_beside(const char *path, mode_t mode, char **ret_name)
{
	for (unsigned int attempt = 0; attempt < 16; attempt++) {
		autofree char *name = NULL;
		uint32_t salt;
		int fd;

		if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
			return -EIO;
		name = text_format("%s.%08" PRIx32 ".tmp", path, salt);
		if (!name)
			return -ENOMEM;
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0) {
			*ret_name = TAKE_PTR(name);
			return fd;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* The file's name is the folder's data. A folder that cannot be synced (FUSE) was still written. */
static void sync_folder_of(const char *path)
{
	autofree char *copy = strdup(path);
	autoclose int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void)fsync(fd);
}

/* A reader of @path sees the old or the new document, never a part, even after a power failure. */
static int replace_file(const char *path, const struct stat *old, const struct content *content)
{
	autofree char *name = NULL;
	autoclose int fd = create_beside(path, 0666, &name);
	int err;

	if (fd < 0)
		return fd;
	err = write_content(fd, content);
	if (!err && old && fchmod(fd, old->st_mode & 07777))
		err = -errno;
	if (!err && fsync(fd) && errno != EINVAL && errno != ENOSYS)
		err = -errno;
	if (!err && rename(name, path))
		err = -errno;
	if (err)
		unlink(name);
	else
		sync_folder_of(path);
	return err;
}

/* A pipe may wait for its reader without end: let signals end the program meanwhile. */
static int write_in_place(const char *path, const struct content *content)
{
	struct ending before;
	int err = 0;

	ending_allow(&before);
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
	else
		err = write_content(fd, content);
	ending_restore(&before);
	return err;
}

static int write_stdout(const struct content *content)
{
	errno = 0;
	if (content->run)
		return run_print_json(content->run, stdout);
	if (!content->text)
		return copy_all(STDOUT_FILENO, content->fd);
	return fputs(content->text, stdout) == EOF || fflush(stdout) ? -(errno ?: EIO) : 0;
}

static int write_path(const struct content *content, const char *path)
{
	autofree char *target = NULL;
	struct stat old;

	if (!strcmp(path, "-"))
		return write_stdout(content);
	if (stat(path, &old))
		return errno == ENOENT ? replace_file(path, NULL, content) : -errno;
	/* Write to anything but regular files (a pipe, /dev/null), never replace it. */
	if (!S_ISREG(old.st_mode))
		return write_in_place(path, content);
	/* Keep a symbolic link, and replace its target. */
	target = realpath(path, NULL);
	return target ? replace_file(target, &old, content) : -errno;
}

int run_write_text(const char *text, const char *path)
{
	return write_path(&(struct content){.text = text}, path);
}

/* Try the steps of replace_file(), without replacing. */
static int try_beside(const char *path)
{
	autofree char *name = NULL;
	autoclose int fd = create_beside(path, 0600, &name);

	if (fd < 0)
		return fd;
	return unlink(name) ? -errno : 0;
}

int run_try_write(const char *path)
{
	autofree char *target = NULL;
	struct stat old;

	if (!strcmp(path, "-"))
		return 0;
	if (stat(path, &old))
		return errno == ENOENT ? try_beside(path) : -errno;
	if (S_ISDIR(old.st_mode))
		return -EISDIR;
	if (!S_ISREG(old.st_mode)) /* opening a pipe would wait for its reader */
		return access(path, W_OK) ? -errno : 0;
	target = realpath(path, NULL);
	return target ? try_beside(target) : -errno;
}

int run_write_file(int fd, const char *path)
{
	return write_path(&(struct content){.fd = fd}, path);
}

int run_write(const struct run *run, const char *path)
{
	return write_path(&(struct content){.run = run}, path);
}

/*
 * Read @fd up to one byte more than RUN_TEXT_LIMIT, which run_from_json() refuses: a file may be
 * endless (/dev/zero).
 */
static int read_all(int fd, char **ret_text, size_t *ret_length)
{
	size_t length = 0, capacity = 1 << 16;
	autofree char *text = malloc(capacity);
	ssize_t got;

	if (!text)
		return -ENOMEM;
	while ((got = read(fd, text + length, capacity - length)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		length += (size_t)got;
		if (length > RUN_TEXT_LIMIT)
			break;
		if (length == capacity) {
			char *grown = realloc(text, capacity * 2);

			if (!grown)
				return -ENOMEM;
			text = grown;
			capacity *= 2;
		}
	}
	*ret_text = TAKE_PTR(text);
	*ret_length = length;
	return 0;
}

int run_read_text(const char *path, char **ret_text, size_t *ret_length)
{
	bool input = !strcmp(path, "-");
	autoclose int fd = input ? -1 : open(path, O_RDONLY | O_CLOEXEC);

	if (!input && fd < 0)
		return -errno;
	return read_all(input ? STDIN_FILENO : fd, ret_text, ret_length);
}

int run_read(const char *path, struct run **ret_run, char **ret_error)
{
	autofree char *text = NULL;
	size_t length = 0;
	int err = run_read_text(path, &text, &length);

	return err ? err : run_from_json(text, length, ret_run, ret_error);
}
