// SPDX-License-Identifier: MIT
/* The files of secrets: when they are read again, and their conditions; see secrets.h. */
#include "secrets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

/* Enough for a chain of certificates. */
#define SECRET_MAX (256 * 1024)
/* 128 bits in base64, so that nobody guesses it. */
#define TOKEN_MIN 22
#define FILES	  5U

/* The identity of a file: equal as long as the file is unchanged. */
struct stamp {
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
};

struct watched {
	const char *path;  /* NULL: not given */
	const char **text; /* the field of the access */
	char *owned;	   /* the text read again; NULL: the caller's */
	const char *(*read)(const char *path, char **ret_text);
	struct stamp stamp;
	bool tls;
};

struct http_secrets {
	struct sink_http_access *access;
	struct watched files[FILES];
	uint64_t looked_ns;
};

/* ---- one file ---- */

static int read_text(const char *path, char **ret_text)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	autofree char *text = NULL;
	ssize_t length;

	if (fd < 0)
		return -errno;
	text = calloc(1, SECRET_MAX);
	if (!text)
		return -ENOMEM;
	length = read(fd, text, SECRET_MAX - 1);
	if (length < 0)
		return -errno;
	if (length == SECRET_MAX - 1)
		return -EFBIG;
	*ret_text = TAKE_PTR(text);
	return 0;
}

const char *http_secrets_read_token(const char *path, char **ret_text)
{
	autofree char *text = NULL;
	size_t length;

	if (read_text(path, &text) < 0)
		return "a file that can be read, with the token as its first line";
	length = strcspn(text, "\r\n");
	text[length] = 0;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]))
			return "a file whose first line is a token: letters, digits, signs";
	if (length < TOKEN_MIN)
		return "a file with a token of at least 22 characters: openssl rand -base64 24";
	*ret_text = TAKE_PTR(text);
	return NULL;
}

const char *http_secrets_read_pem(const char *path, char **ret_text)
{
	autofree char *text = NULL;

	if (read_text(path, &text) < 0 || !strstr(text, "-----BEGIN "))
		return "a PEM file that can be read";
	*ret_text = TAKE_PTR(text);
	return NULL;
}

bool http_secrets_is_public(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_mode & S_IROTH;
}

static gnutls_datum_t datum_of(const char *text)
{
	return (gnutls_datum_t){(unsigned char *)text, (unsigned int)strlen(text)};
}

int http_secrets_check(const struct sink_http_access *access)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t cert, key, ca;
	int r;

	if (!access->tls_key)
		return 0;
	if (gnutls_certificate_allocate_credentials(&credentials))
		return -ENOMEM;
	cert = datum_of(access->tls_cert);
	key = datum_of(access->tls_key);
	r = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
	if (r >= 0 && access->tls_client_ca) {
		ca = datum_of(access->tls_client_ca);
		r = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
		r = r > 0 ? 0 : -1;
	}
	gnutls_certificate_free_credentials(credentials);
	return r < 0 ? -EINVAL : 0;
}

/* ---- all of them ---- */

static struct stamp stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (struct stamp){0};
	return (struct stamp){st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
	return a->inode == b->inode && a->size == b->size &&
	       clock_timespec_ns(&a->modified) == clock_timespec_ns(&b->modified) &&
	       clock_timespec_ns(&a->changed) == clock_timespec_ns(&b->changed);
}

struct http_secrets *http_secrets_new(struct sink_http_access *access)
{
	const struct watched files[FILES] = {
		{.path = access->files.token,
		 .text = &access->token,
		 .read = http_secrets_read_token},
		{.path = access->files.read_token,
		 .text = &access->read_token,
		 .read = http_secrets_read_token},
		{.path = access->files.tls_key,
		 .text = &access->tls_key,
		 .read = http_secrets_read_pem,
		 .tls = true},
		{.path = access->files.tls_cert,
		 .text = &access->tls_cert,
		 .read = http_secrets_read_pem,
		 .tls = true},
		{.path = access->files.tls_client_ca,
		 .text = &access->tls_client_ca,
		 .read = http_secrets_read_pem,
		 .tls = true},
	};
	struct http_secrets *secrets = calloc(1, sizeof(*secrets));

	if (!secrets)
		return NULL;
	secrets->access = access;
	memcpy(secrets->files, files, sizeof(files));
	for (size_t i = 0; i < FILES; i++)
		if (files[i].path)
			secrets->files[i].stamp = stamp_of(files[i].path);
	return secrets;
}

static void say(const struct http_secrets *secrets, const char *path, const char *wrong)
{
	if (secrets->access->say)
		secrets->access->say(path, wrong);
}

static void forget(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

/* Give the text to @file. */
static void take(struct watched *file, char *text)
{
	forget(file->owned);
	file->owned = text;
	*file->text = text;
}

static void renew_token(const struct http_secrets *secrets, struct watched *file)
{
	char *text = NULL;
	const char *wrong = file->read(file->path, &text);

	if (!wrong)
		take(file, text);
	say(secrets, file->path, wrong);
}

/* Key and certificate belong together: all files of TLS are read, and used only as a whole. */
static bool renew_tls(struct http_secrets *secrets, const char *changed)
{
	struct sink_http_access access = *secrets->access;
	const char **ours[FILES] = {
		[2] = &access.tls_key, [3] = &access.tls_cert, [4] = &access.tls_client_ca};
	char *texts[FILES] = {NULL};
	const char *wrong = NULL;

	for (size_t i = 2; i < FILES && !wrong; i++) {
		struct watched *file = &secrets->files[i];

		if (file->path)
			wrong = file->read(file->path, &texts[i]);
		if (texts[i])
			*ours[i] = texts[i];
	}
	if (!wrong && http_secrets_check(&access))
		wrong = "a certificate and its key, and an authority's certificate, in PEM";
	for (size_t i = 2; i < FILES; i++) {
		if (wrong)
			forget(texts[i]);
		else if (texts[i])
			take(&secrets->files[i], texts[i]);
	}
	say(secrets, changed, wrong);
	return !wrong;
}

bool http_secrets_renew(struct http_secrets *secrets)
{
	uint64_t now = clock_now_ns();
	const char *tls = NULL;

	if (!secrets || now - secrets->looked_ns < NSEC_PER_SEC)
		return false;
	secrets->looked_ns = now;
	for (size_t i = 0; i < FILES; i++) {
		struct watched *file = &secrets->files[i];
		struct stamp stamp;

		if (!file->path)
			continue;
		stamp = stamp_of(file->path);
		if (is_same(&stamp, &file->stamp))
			continue;
		file->stamp = stamp;
		if (file->tls)
			tls = file->path;
		else
			renew_token(secrets, file);
	}
	return tls && renew_tls(secrets, tls);
}

void http_secrets_free(struct http_secrets *secrets)
{
	if (!secrets)
		return;
	for (size_t i = 0; i < FILES; i++)
		forget(secrets->files[i].owned);
	free(secrets);
}
