// SPDX-License-Identifier: MIT
/* Protocols by their first bytes; nothing else is mistaken for one. */
#include "driver/test.h"

#include "sojourn/cleanup.h"
#include "transport/speech.h"

#define ROW(text, speech) {text, sizeof(text) - 1, speech}

static const struct {
	const char *bytes;
	size_t length;
	enum speech speech;
} rows[] = {
	ROW("HTTP/1.1 400 Bad Request\r\n", SPEECH_HTTP1),
	ROW("HTTP/1.0 200", SPEECH_HTTP1),
	ROW("HTTP/2.0 200", SPEECH_UNKNOWN),
	ROW("HTTP", SPEECH_UNKNOWN),
	ROW("<!DOCTYPE HTML>", SPEECH_TEXT),
	ROW("<html>", SPEECH_TEXT),
	ROW("<h", SPEECH_UNKNOWN),
	/* An alert, and a ServerHello. */
	ROW("\x15\x03\x01\x00\x02\x02\x46", SPEECH_TLS),
	ROW("\x16\x03\x03\x00\x7a", SPEECH_TLS),
	ROW("\x15\x02\x01", SPEECH_UNKNOWN),
	ROW("\x18\x03\x03", SPEECH_UNKNOWN),
	ROW("\x15\x03", SPEECH_UNKNOWN),
	/* SETTINGS, empty and of two settings; on a stream, of no whole setting, and cut off. */
	ROW("\0\0\0\x04\0\0\0\0\0", SPEECH_HTTP2),
	ROW("\0\0\x0c\x04\0\0\0\0\0\0\x03", SPEECH_HTTP2),
	ROW("\0\0\x0c\x04\0\0\0\0\x01", SPEECH_UNKNOWN),
	ROW("\0\0\x05\x04\0\0\0\0\0", SPEECH_UNKNOWN),
	ROW("\0\0\0\x04\0\0\0\0", SPEECH_UNKNOWN),
	ROW("SSH-2.0-OpenSSH\r\n", SPEECH_UNKNOWN),
	ROW("", SPEECH_UNKNOWN),
};

static void test_speech(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (speech_of(rows[i].bytes, rows[i].length) != rows[i].speech)
			fail_msg("row %zu is %d", i, speech_of(rows[i].bytes, rows[i].length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_speech)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
