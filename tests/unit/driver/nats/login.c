// SPDX-License-Identifier: MIT
/* Files of credentials, and the CONNECT of each. The key is that of NATS's documentation. */
#include "driver/test.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "nats/login.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"

#define SEED   "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
#define PUBLIC "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
#define CREDS                                                                                  \
	"-----BEGIN NATS USER JWT-----\r\neyJ0.eyJq.c2ln\r\n------END NATS USER JWT------\r\n" \
	"\r\n-----BEGIN USER NKEY SEED-----\r\n" SEED "\r\n------END USER NKEY SEED------\r\n"

/* Return the CONNECT after reading this file. */
static json_t *connect_of(const char *file, const char *nonce)
{
	struct nats_login login = {0};
	autofree char *error = NULL, *text = NULL;

	assert_int_equal(nats_login_parse(file, strlen(file), &login, &error), 0);
	assert_int_equal(nats_login_connect(&login, nonce, true, &text, &error), 0);
	nats_login_clear(&login);
	return json_loads(text, 0, NULL);
}

static const char *value(const json_t *connect, const char *name)
{
	const char *text = json_string_value(json_object_get(connect, name));

	return text ? text : "";
}

static void each_kind_shows_what_it_is(void **state)
{
	autojson json_t *password = connect_of("me:pass:word\nmore", NULL);
	autojson json_t *token = connect_of("s3cr3t \\\"\r\n", NULL);
	autojson json_t *seed = connect_of(SEED "\n", "nonce");
	autojson json_t *creds = connect_of(CREDS, "nonce");

	assert_string_equal(value(password, "user"), "me");
	assert_string_equal(value(password, "pass"), "pass:word");
	assert_string_equal(value(token, "auth_token"), "s3cr3t \\\"");
	assert_string_equal(value(seed, "nkey"), PUBLIC);
	assert_string_equal(value(creds, "jwt"), "eyJ0.eyJq.c2ln");
	assert_string_equal(value(creds, "nkey"), "");
	/* Ed25519 has one signature of a text: 64 bytes, in base64 for URLs. */
	assert_int_equal(strlen(value(seed, "sig")), 86);
	assert_null(strpbrk(value(seed, "sig"), "+/="));
	assert_string_equal(value(seed, "sig"), value(creds, "sig"));
}

static void what_is_no_login_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"\nabc",
		"a\tb",
		"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3UY", /* its checksum */
		"SAACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY", /* an account's */
		"-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n",
		("-----BEGIN USER NKEY SEED-----\n" SEED "\n------END USER NKEY SEED------\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct nats_login login = {0};
		autofree char *error = NULL;

		assert_int_equal(nats_login_parse(wrong[i], strlen(wrong[i]), &login, &error),
				 -EINVAL);
		assert_non_null(error);
		assert_null(strstr(error, "UACSSL3"));
	}
}

static void a_key_needs_something_to_sign(void **state)
{
	struct nats_login login = {0};
	autofree char *error = NULL, *text = NULL;

	assert_int_equal(nats_login_parse(SEED, strlen(SEED), &login, &error), 0);
	assert_int_equal(nats_login_connect(&login, NULL, false, &text, &error), -EINVAL);
	assert_non_null(error);
	nats_login_clear(&login);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_shows_what_it_is),
		cmocka_unit_test(what_is_no_login_is_refused),
		cmocka_unit_test(a_key_needs_something_to_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
