// SPDX-License-Identifier: MIT
/* The secret of a stored run; see seal.h. */
#include "seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_BYTES (SEAL_LENGTH / 2)

/* Keys and seals are hashes of different texts: no record begins so. */
#define KEY_OF "key"

static int hash(const char *secret, const char *text, size_t length,
		char ret_hash[static SEAL_LENGTH + 1])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	if (!HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, length,
		  bytes, &size) ||
	    size != HASH_BYTES)
		return -ENOMEM;
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(ret_hash + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int seal_key(const char *secret, char ret_key[static SECRET_LENGTH + 1])
{
	char whole[SEAL_LENGTH + 1];
	int err = hash(secret, KEY_OF, strlen(KEY_OF), whole);

	if (!err)
		snprintf(ret_key, SECRET_LENGTH + 1, "%.*s", SECRET_LENGTH, whole);
	return err;
}

char *seal_put(const char *secret, const char *text)
{
	char seal[SEAL_LENGTH + 1], *sealed;

	if (hash(secret, text, strlen(text), seal) || asprintf(&sealed, "%s%s", seal, text) < 0)
		return NULL;
	return sealed;
}

const char *seal_open(const char *secret, const char *sealed, size_t length)
{
	char seal[SEAL_LENGTH + 1];

	if (length < SEAL_LENGTH ||
	    hash(secret, sealed + SEAL_LENGTH, length - SEAL_LENGTH, seal) ||
	    CRYPTO_memcmp(seal, sealed, SEAL_LENGTH) != 0)
		return NULL;
	return sealed + SEAL_LENGTH;
}
