// SPDX-License-Identifier: MIT
/* TLS over bytes in memory: the shared context (trust, identity, ALPN), and connections. */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/refuse.h"
#include "speech.h"

#define OUT_MIN 4096U

/* Shared by all connections of a run. */
struct tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *method;
	const char *protocol; /* a constant */
	const char *sni;      /* borrowed; NULL: the server is an address */
};

struct tls {
	SSL *ssl;
	struct tls_context *context;
	struct tls_buffers *buffers;
	const char *in; /* fed but not read yet */
	size_t in_length;
	bool fed;		  /* something was fed */
	enum speech speech;	  /* by the first bytes */
	enum tls_verdict pending; /* for the next tls_read(); TLS_DONE: call OpenSSL */
	enum run_error error;
	const char *detail;
};

/* OpenSSL reads from and writes to our buffers. */
static int on_bio_read(BIO *bio, char *data, int size)
{
	struct tls *tls = BIO_get_data(bio);
	size_t length = tls->in_length < (size_t)size ? tls->in_length : (size_t)size;

	BIO_clear_retry_flags(bio);
	if (!length) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(data, tls->in, length);
	tls->in += length;
	tls->in_length -= length;
	return (int)length;
}

static int grow(struct tls_buffers *buffers, size_t length)
{
	size_t capacity = buffers->out_capacity ? buffers->out_capacity : OUT_MIN;
	char *grown;

	while (capacity < length)
		capacity *= 2;
	if (capacity == buffers->out_capacity)
		return 0;
	grown = realloc(buffers->out, capacity);
	if (!grown)
		return -ENOMEM;
	buffers->out = grown;
	buffers->out_capacity = capacity;
	return 0;
}

static int on_bio_write(BIO *bio, const char *data, int length)
{
	struct tls_buffers *buffers = ((struct tls *)BIO_get_data(bio))->buffers;

	BIO_clear_retry_flags(bio);
	if (grow(buffers, buffers->out_length + (size_t)length))
		return -1;
	memcpy(buffers->out + buffers->out_length, data, (size_t)length);
	buffers->out_length += (size_t)length;
	return length;
}

static long on_bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method_new(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sojourn");

	if (!method)
		return NULL;
	BIO_meth_set_read(method, on_bio_read);
	BIO_meth_set_write(method, on_bio_write);
	BIO_meth_set_ctrl(method, on_bio_control);
	return method;
}

/* Return -EINVAL, like refuse(); OpenSSL's reason comes last. */
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

/* OpenSSL would prompt on the terminal. */
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

/* SNI never has an address (RFC 6066), but the certificate must name it. */
static int set_name(struct tls_context *context, const char *name)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context->ssl);
	struct in6_addr address;

	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) ? 0 : -ENOMEM;
	context->sni = name;
	return X509_VERIFY_PARAM_set1_host(param, name, 0) ? 0 : -ENOMEM;
}

static int offer(struct tls_context *context, const char *protocol)
{
	char list[32]; /* a length byte and a name */
	size_t length = protocol ? strlen(protocol) : 0;

	context->protocol = protocol;
	if (!protocol)
		return 0;
	snprintf(list, sizeof(list), "%c%s", (int)length, protocol);
	/* 0 is success. */
	return SSL_CTX_set_alpn_protos(context->ssl, (const unsigned char *)list,
				       (unsigned int)length + 1)
		       ? -ENOMEM
		       : 0;
}

static int fill_context(struct tls_context *context, const struct tls_options *options,
			const char *host, const char *protocol, char **ret_error)
{
	int err;

	context->method = bio_method_new();
	context->ssl = SSL_CTX_new(TLS_client_method());
	if (!context->method || !context->ssl)
		return -ENOMEM;
	SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
	/* Free an idle connection's buffers of 16 KiB. */
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
	int err = context ? fill_context(context, options, host, protocol, ret_error) : -ENOMEM;

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

int tls_buffers_init(struct tls_buffers *buffers)
{
	buffers->plaintext = malloc(TLS_PLAINTEXT_SIZE);
	return buffers->plaintext ? 0 : -ENOMEM;
}

void tls_buffers_clear(struct tls_buffers *buffers)
{
	free(buffers->out);
	free(buffers->plaintext);
	*buffers = (struct tls_buffers){0};
}

/* The SSL owns its BIO. */
static int attach(struct tls *tls)
{
	BIO *bio = BIO_new(tls->context->method);

	if (!bio)
		return -ENOMEM;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_connect_state(tls->ssl);
	if (tls->context->sni && !SSL_set_tlsext_host_name(tls->ssl, tls->context->sni))
		return -ENOMEM;
	return 0;
}

struct tls *tls_new(struct tls_context *context, struct tls_buffers *buffers)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	tls->context = context;
	tls->buffers = buffers;
	tls->pending = TLS_DONE;
	tls->ssl = SSL_new(context->ssl);
	if (!tls->ssl || attach(tls)) {
		tls_free(tls);
		return NULL;
	}
	return tls;
}

void tls_free(struct tls *tls)
{
	if (tls)
		SSL_free(tls->ssl);
	free(tls);
}

void tls_feed(struct tls *tls, const char *data, size_t length)
{
	tls->in = data;
	tls->in_length = length;
	if (tls->fed)
		return;
	tls->fed = true;
	tls->speech = speech_of(data, length);
}

static enum tls_verdict fail(struct tls *tls, enum run_error error, const char *detail)
{
	tls->error = error;
	tls->detail = detail;
	ERR_clear_error();
	return TLS_FAILED;
}

/* Return the protocol spoken instead of TLS; NULL: not known, or TLS. */
static const char *other_speech(const struct tls *tls)
{
	const char *protocol = tls->context->protocol;

	if (tls->speech != SPEECH_HTTP1 && tls->speech != SPEECH_TEXT)
		return tls->speech == SPEECH_HTTP2 ? "the server spoke plain HTTP/2: use h2c://"
						   : NULL;
	return protocol && !strcmp(protocol, "h2")
		       ? "the server spoke plain HTTP: use http:// or h2c://"
		       : "the server spoke plain HTTP: use http://";
}

static enum tls_verdict fail_by_queue(struct tls *tls)
{
	unsigned long code = ERR_peek_error();
	int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
	long verified = SSL_get_verify_result(tls->ssl);

	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return fail(tls, RUN_ERROR_CERTIFICATE, X509_verify_cert_error_string(verified));
	if (reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
		return fail(tls, RUN_ERROR_NOT_NEGOTIATED,
			    "the server refused ALPN's offer: use https:// for HTTP/1.1");
	if (other_speech(tls))
		return fail(tls, RUN_ERROR_TLS, other_speech(tls));
	return fail(tls, RUN_ERROR_TLS, code ? ERR_reason_error_string(code) : NULL);
}

static enum tls_verdict judge(struct tls *tls, int result)
{
	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return TLS_MORE;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_ENDED;
	default:
		return fail_by_queue(tls);
	}
}

/* A server that ignores ALPN speaks HTTP/1.1. */
static enum tls_verdict check_protocol(struct tls *tls)
{
	const char *wanted = tls->context->protocol;
	const unsigned char *chosen = NULL;
	unsigned int length = 0;

	if (!wanted || !strcmp(wanted, "http/1.1"))
		return TLS_DONE;
	SSL_get0_alpn_selected(tls->ssl, &chosen, &length);
	if (length == strlen(wanted) && !memcmp(chosen, wanted, length))
		return TLS_DONE;
	return fail(tls, RUN_ERROR_NOT_NEGOTIATED,
		    "the server did not choose h2 in ALPN: use https:// for HTTP/1.1");
}

enum tls_verdict tls_handshake(struct tls *tls)
{
	int result;

	ERR_clear_error();
	result = SSL_do_handshake(tls->ssl);
	return result == 1 ? check_protocol(tls) : judge(tls, result);
}

/* Fill the plaintext buffer. Return what follows. */
static enum tls_verdict fill(struct tls *tls, size_t *ret_length)
{
	char *plaintext = tls->buffers->plaintext;
	size_t filled = 0, length;
	int result = 1;

	ERR_clear_error();
	while (filled < TLS_PLAINTEXT_SIZE && result == 1) {
		length = 0;
		result = SSL_read_ex(tls->ssl, plaintext + filled, TLS_PLAINTEXT_SIZE - filled,
				     &length);
		filled += length;
	}
	*ret_length = filled;
	return result == 1 ? TLS_DONE : judge(tls, result);
}

/* Return bytes before the end or failure that follows them. */
enum tls_verdict tls_read(struct tls *tls, size_t *ret_length)
{
	enum tls_verdict verdict = tls->pending;

	*ret_length = 0;
	tls->pending = TLS_DONE;
	if (verdict != TLS_DONE)
		return verdict;
	verdict = fill(tls, ret_length);
	if (!*ret_length)
		return verdict;
	tls->pending = verdict;
	return TLS_DONE;
}

enum tls_verdict tls_write(struct tls *tls, const char *data, size_t length)
{
	size_t written;
	int result;

	ERR_clear_error();
	result = SSL_write_ex(tls->ssl, data, length, &written);
	return result == 1 ? TLS_DONE : judge(tls, result);
}

void tls_bye(struct tls *tls)
{
	ERR_clear_error();
	if (SSL_is_init_finished(tls->ssl))
		SSL_shutdown(tls->ssl);
	ERR_clear_error();
}

enum run_error tls_failure(const struct tls *tls, const char **ret_detail)
{
	*ret_detail = tls->detail;
	return tls->error;
}
