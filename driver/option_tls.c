// SPDX-License-Identifier: MIT
/* Whom to trust in TLS, and who we are. */
#include "option_rows.h"

#include "sojourn/cleanup.h"

static int apply_ca(struct options *options, const char *value, char **ret_error)
{
	(void)ret_error;
	options->tls.ca_path = value;
	return 0;
}

static int apply_insecure(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->tls.insecure = true;
	return 0;
}

static int apply_cert(struct options *options, const char *value, char **ret_error)
{
	(void)ret_error;
	options->tls.cert_path = value;
	return 0;
}

static int apply_key(struct options *options, const char *value, char **ret_error)
{
	(void)ret_error;
	options->tls.key_path = value;
	return 0;
}

static int apply_server_name(struct options *options, const char *value, char **ret_error)
{
	(void)ret_error;
	options->tls.server_name = value;
	return 0;
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "ca", "FILE",
	 "trust the certificates in FILE (PEM), and no others\n(default: the system's authorities)",
	 apply_ca},
	{0, "insecure", NULL, "accept any certificate", apply_insecure},
	{0, "server-name", "NAME",
	 "ask for NAME (SNI), and expect it in the certificate\n(default: the URL's host)",
	 apply_server_name},
	{0, "cert", "FILE", "present this certificate, with its chain (PEM)", apply_cert},
	{0, "key", "FILE", "its private key (default: in the same file)", apply_key},
};
/* clang-format on */

const struct option_table option_tls = {"TLS (https, h2)", rows, ARRAY_SIZE(rows)};
