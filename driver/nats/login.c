// SPDX-License-Identifier: MIT
/*
 * Credentials and the CONNECT that shows them; see login.h. An nkey is an Ed25519 key in base32:
 * a prefix, 32 bytes, and a checksum (CRC-16/XMODEM, little-endian).
 */
#include "login.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

#define KEY_BYTES	32U
#define SUM_BYTES	2U
#define SEED_PREFIX	2U
#define SEED_BYTES	(SEED_PREFIX + KEY_BYTES + SUM_BYTES)
#define SEED_TEXT	58U /* characters of base32 */
#define PUBLIC_BYTES	(1U + KEY_BYTES + SUM_BYTES)
#define PUBLIC_TEXT	56U
#define SIGNATURE_BYTES 64U
#define SIGNATURE_TEXT	(4 * ((SIGNATURE_BYTES + 2) / 3) + 1)

/* The first five bits of a prefix make the first letter: S is a seed, U a user. */
#define PREFIX_SEED (18U << 3)
#define PREFIX_USER (20U << 3)

static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static void clear_text(char **text)
{
	if (*text)
		OPENSSL_cleanse(*text, strlen(*text));
	free(TAKE_PTR(*text));
}

bool nats_login_is_given(const struct nats_login *login)
{
	return login->user || login->token || login->jwt || login->seed;
}

void nats_login_clear(struct nats_login *login)
{
	clear_text(&login->user);
	clear_text(&login->password);
	clear_text(&login->token);
	clear_text(&login->jwt);
	clear_text(&login->seed);
}

/* ---- nkeys ---- */

static uint16_t checksum(const uint8_t *bytes, size_t length)
{
	uint16_t sum = 0;

	for (size_t i = 0; i < length; i++) {
		sum ^= (uint16_t)(bytes[i] << 8);
		for (unsigned int bit = 0; bit < 8; bit++)
			sum = (uint16_t)(sum & 0x8000 ? sum << 1 ^ 0x1021 : sum << 1);
	}
	return sum;
}

static int decode_seed(const char *text, uint8_t ret_bytes[static SEED_BYTES])
{
	uint32_t bits = 0;
	unsigned int held = 0;
	size_t count = 0;

	for (size_t i = 0; i < SEED_TEXT; i++) {
		const char *letter = text[i] ? strchr(base32, text[i]) : NULL;

		if (!letter)
			return -EINVAL;
		bits = bits << 5 | (uint32_t)(letter - base32);
		held += 5;
		if (held >= 8) {
			held -= 8;
			ret_bytes[count++] = (uint8_t)(bits >> held);
		}
	}
	/* The user's prefix lies across both bytes. */
	if ((ret_bytes[0] & 0xf8) != PREFIX_SEED ||
	    ((ret_bytes[0] & 7U) << 5 | ret_bytes[1] >> 3) != PREFIX_USER)
		return -EINVAL;
	return ret_bytes[SEED_BYTES - 2] + (ret_bytes[SEED_BYTES - 1] << 8) ==
			       checksum(ret_bytes, SEED_BYTES - SUM_BYTES)
		       ? 0
		       : -EINVAL;
}

static void encode_public(const uint8_t key[static KEY_BYTES],
			  char ret_text[static PUBLIC_TEXT + 1])
{
	uint8_t bytes[PUBLIC_BYTES] = {PREFIX_USER};
	uint32_t bits = 0;
	unsigned int held = 0;
	size_t count = 0;
	uint16_t sum;

	memcpy(bytes + 1, key, KEY_BYTES);
	sum = checksum(bytes, PUBLIC_BYTES - SUM_BYTES);
	bytes[PUBLIC_BYTES - 2] = (uint8_t)sum;
	bytes[PUBLIC_BYTES - 1] = (uint8_t)(sum >> 8);
	for (size_t i = 0; i < PUBLIC_BYTES; i++) {
		bits = bits << 8 | bytes[i];
		for (held += 8; held >= 5; held -= 5)
			ret_text[count++] = base32[bits >> (held - 5) & 31];
	}
	ret_text[count] = '\0';
}

/* Base64 for URLs, without padding. */
static void encode_signature(const uint8_t bytes[static SIGNATURE_BYTES],
			     char ret_text[static SIGNATURE_TEXT])
{
	EVP_EncodeBlock((unsigned char *)ret_text, bytes, SIGNATURE_BYTES);
	ret_text[strcspn(ret_text, "=")] = '\0';
	for (char *at = ret_text; *at; at++)
		*at = *at == '+' ? '-' : *at == '/' ? '_' : *at;
}

static void free_key(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static void free_digest(EVP_MD_CTX **digest)
{
	EVP_MD_CTX_free(*digest);
}

static int sign(const uint8_t *seed, const char *nonce, char ret_public[static PUBLIC_TEXT + 1],
		char ret_signature[static SIGNATURE_TEXT])
{
	CLEANUP(free_key)
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, KEY_BYTES);
	CLEANUP(free_digest) EVP_MD_CTX *digest = EVP_MD_CTX_new();
	uint8_t public[KEY_BYTES], signature[SIGNATURE_BYTES];
	size_t public_length = sizeof(public), length = sizeof(signature);

	if (!key || !digest || EVP_PKEY_get_raw_public_key(key, public, &public_length) != 1 ||
	    EVP_DigestSignInit(digest, NULL, NULL, NULL, key) != 1 ||
	    EVP_DigestSign(digest, signature, &length, (const unsigned char *)nonce,
			   strlen(nonce)) != 1)
		return -ENOMEM;
	encode_public(public, ret_public);
	encode_signature(signature, ret_signature);
	return 0;
}

/* ---- the file ---- */

static bool is_seed(const char *text)
{
	uint8_t bytes[SEED_BYTES];
	bool is = strlen(text) == SEED_TEXT && !decode_seed(text, bytes);

	OPENSSL_cleanse(bytes, sizeof(bytes));
	return is;
}

/* Return the first line after the dashed line that has @title. NULL: there is none, or no memory. */
static char *find_block(const char *text, const char *title)
{
	const char *at = strstr(text, title);

	at = at ? strchr(at, '\n') : NULL;
	if (!at)
		return NULL;
	at += strspn(at, " \t\r\n");
	return *at && *at != '-' ? strndup(at, strcspn(at, " \t\r\n")) : NULL;
}

static int parse_creds(const char *text, struct nats_login *login, char **ret_error)
{
	login->jwt = find_block(text, "-----BEGIN NATS USER JWT-----");
	login->seed = find_block(text, "-----BEGIN USER NKEY SEED-----");
	if (!login->jwt || !login->seed || !is_seed(login->seed))
		return refuse(ret_error, "it is no whole .creds file: it must hold a user's JWT "
					 "and a user's nkey seed");
	return 0;
}

static int parse_line(const char *line, struct nats_login *login, char **ret_error)
{
	const char *colon = strchr(line, ':');

	for (const char *at = line; *at; at++)
		if (iscntrl((unsigned char)*at))
			return refuse(ret_error, "its first line is no text");
	if (!*line)
		return refuse(ret_error, "its first line is empty; it holds an nkey's seed, "
					 "USER:PASSWORD or a token");
	if (is_seed(line)) {
		login->seed = strdup(line);
	} else if (strlen(line) == SEED_TEXT && *line == 'S') {
		return refuse(ret_error, "its first line looks like an nkey's seed, but is not "
					 "that of a user, or mistyped");
	} else if (colon) {
		login->user = strndup(line, (size_t)(colon - line));
		login->password = strdup(colon + 1);
	} else {
		login->token = strdup(line);
	}
	return login->seed || login->token || (login->user && login->password) ? 0 : -ENOMEM;
}

int nats_login_parse(const char *text, size_t length, struct nats_login *ret_login,
		     char **ret_error)
{
	struct nats_login login = {0};
	CLEANUP(clear_text) char *own = strndup(text, length);
	int err;

	if (!own)
		return -ENOMEM;
	if (strstr(own, "-----BEGIN ")) {
		err = parse_creds(own, &login, ret_error);
	} else {
		own[strcspn(own, "\r\n")] = '\0';
		err = parse_line(own, &login, ret_error);
	}
	if (err)
		nats_login_clear(&login);
	else
		*ret_login = login;
	return err;
}

/* ---- the CONNECT ---- */

static int add_signature(const struct nats_login *login, const char *nonce, json_t *connect,
			 char **ret_error)
{
	uint8_t seed[SEED_BYTES];
	char public[PUBLIC_TEXT + 1], signature[SIGNATURE_TEXT];
	int err;

	if (!nonce)
		return refuse(ret_error, "the server asks for no nkey, but the credentials are "
					 "one");
	err = decode_seed(login->seed, seed);
	if (!err)
		err = sign(seed + SEED_PREFIX, nonce, public, signature);
	OPENSSL_cleanse(seed, sizeof(seed));
	if (err)
		return err;
	err = json_object_set_new(connect, "sig", json_string(signature));
	if (login->jwt)
		err = json_object_set_new(connect, "jwt", json_string(login->jwt)) ?: err;
	else
		err = json_object_set_new(connect, "nkey", json_string(public)) ?: err;
	return err ? -ENOMEM : 0;
}

int nats_login_connect(const struct nats_login *login, const char *nonce, bool tls, char **ret_json,
		       char **ret_error)
{
	autojson json_t *connect =
		json_pack("{s:b, s:b, s:b, s:s, s:s, s:s, s:i, s:s*, s:s*, s:s*}", "verbose", 0,
			  "pedantic", 0, "tls_required", (int)tls, "name", "sojourn-drive", "lang",
			  "c", "version", SOJOURN_VERSION, "protocol", 1, "user", login->user,
			  "pass", login->password, "auth_token", login->token);
	int err = connect ? 0 : -ENOMEM;

	if (!err && login->seed)
		err = add_signature(login, nonce, connect, ret_error);
	if (err)
		return err;
	*ret_json = json_dumps(connect, JSON_COMPACT);
	return *ret_json ? 0 : -ENOMEM;
}
