// SPDX-License-Identifier: MIT
/* What the connections of a run share in TLS: whom to trust, who we are, what is offered. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "tls_impl.h"

/* Returns -EINVAL, as refuse() does; what OpenSSL has to say comes last. */
static int refuse_file(char **ret_error, const char *option, const char *path)
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);
	int err = refuse(ret_error, "--%s: cannot use '%s': %s", option, path,
			 ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
			 : reason		? reason
						: "it is not in PEM");

	ERR_clear_error();
	return err;
}

/* OpenSSL would ask on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *user)
{
	(void)buffer;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static int load_trust(SSL_CTX *ssl, const struct tls_options *options, char **ret_error)
{
	if (options->insecure) {
		SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
		return 0;
	}
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	if (!options->ca_path)
		return SSL_CTX_set_default_verify_paths(ssl) ? 0 : -ENOMEM;
	if (!SSL_CTX_load_verify_file(ssl, options->ca_path))
		return refuse_file(ret_error, "ca", options->ca_path);
	return 0;
}

static int load_identity(SSL_CTX *ssl, const struct tls_options *options, char **ret_error)
{
	const char *key = options->key_path ? options->key_path : options->cert_path;

	if (!options->cert_path)
		return 0;
	SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
	if (SSL_CTX_use_certificate_chain_file(ssl, options->cert_path) != 1)
		return refuse_file(ret_error, "cert", options->cert_path);
	if (SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1)
		return refuse_file(ret_error, options->key_path ? "key" : "cert", key);
	return 0;
}

static bool is_address(const char *host)
{
	struct in6_addr address;

	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* An address goes into no SNI (RFC 6066), but must stand in the certificate. */
static int set_name(struct tls_context *context, const char *name)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context->ssl);

	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) ? 0 : -ENOMEM;
	context->sni = name;
	return X509_VERIFY_PARAM_set1_host(param, name, 0) ? 0 : -ENOMEM;
}

static int offer(struct tls_context *context, const char *protocol)
{
	char list[32]; /* a length and a name */
	size_t length = protocol ? strlen(protocol) : 0;

	context->protocol = protocol;
	if (!protocol)
		return 0;
	snprintf(list, sizeof(list), "%c%s", (int)length, protocol);
	/* 0 is success here. */
	return SSL_CTX_set_alpn_protos(context->ssl, (const unsigned char *)list,
				       (unsigned int)length + 1)
		       ? -ENOMEM
		       : 0;
}

static int fill(struct tls_context *context, const struct tls_options *options, const char *host,
		const char *protocol, char **ret_error)
{
	int err;

	context->method = tls_bio_method_new();
	context->ssl = SSL_CTX_new(TLS_client_method());
	if (!context->method || !context->ssl)
		return -ENOMEM;
	SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
	/* An idle connection keeps no buffers of 16 KiB. */
	SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS);
	err = load_trust(context->ssl, options, ret_error);
	if (!err)
		err = load_identity(context->ssl, options, ret_error);
	if (!err)
		err = set_name(context, options->server_name ? options->server_name : host);
	return err ? err : offer(context, protocol);
}

const char *tls_option_given(const struct tls_options *options)
{
	if (options->ca_path)
		return "--ca";
	if (options->insecure)
		return "--insecure";
	if (options->cert_path)
		return "--cert";
	if (options->key_path)
		return "--key";
	return options->server_name ? "--server-name" : NULL;
}

int tls_context_new(const struct tls_options *options, const char *host, const char *protocol,
		    struct tls_context **ret_context, char **ret_error)
{
	struct tls_context *context = calloc(1, sizeof(*context));
	int err = context ? fill(context, options, host, protocol, ret_error) : -ENOMEM;

	if (err) {
		tls_context_free(context);
		return err;
	}
	*ret_context = context;
	return 0;
}

void tls_context_free(struct tls_context *context)
{
	if (!context)
		return;
	SSL_CTX_free(context->ssl);
	BIO_meth_free(context->method);
	free(context);
}
