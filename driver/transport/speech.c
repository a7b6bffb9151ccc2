// SPDX-License-Identifier: MIT
/* Distinguishes protocols by the first bytes of a server; see speech.h. */
#include "speech.h"

#include <string.h>

#include "sojourn/cleanup.h"

/* RFC 8446, 5.1: record types from change_cipher_spec to application_data, then version 3.x. */
static int is_tls(const unsigned char *bytes, size_t length)
{
	return length >= 3 && bytes[0] >= 20 && bytes[0] <= 23 && bytes[1] == 3 && bytes[2] <= 4;
}

/* RFC 9113, 3.4: a server starts with SETTINGS (type 4) on stream 0, of a length divisible by 6. */
static int is_http2(const unsigned char *bytes, size_t length)
{
	static const unsigned char stream[4] = {0};

	return length >= 9 && !bytes[0] && !bytes[1] && bytes[2] % 6 == 0 && bytes[3] == 4 &&
	       !memcmp(bytes + 5, stream, sizeof(stream));
}

enum speech speech_of(const char *data, size_t length)
{
	static const struct {
		const char *begin;
		enum speech speech;
	} texts[] = {{"HTTP/1.", SPEECH_HTTP1}, {"<!DOCTYPE", SPEECH_TEXT}, {"<html", SPEECH_TEXT}};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (length >= strlen(texts[i].begin) &&
		    !memcmp(data, texts[i].begin, strlen(texts[i].begin)))
			return texts[i].speech;
	if (is_tls((const unsigned char *)data, length))
		return SPEECH_TLS;
	return is_http2((const unsigned char *)data, length) ? SPEECH_HTTP2 : SPEECH_UNKNOWN;
}
