// SPDX-License-Identifier: MIT
/* Parses routes, and gives them to the kernel side; see route.h. */
#include "route.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#define METHOD_LETTERS	   "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
#define STRING_OF_(number) #number
#define STRING_OF(number)  STRING_OF_(number)

#define ROUTE_FORM                                                                           \
	"a path, or the start of one before a final *, perhaps after a method in capitals: " \
	"/health, '/api/*' or 'GET /api/*'; other characters as clients send them: %C3%A9"
#define ROUTE_LONG \
	"a path of at most " STRING_OF(ROUTE_PATH_LIMIT) " bytes, and a method of at most 15"

/* Take the method and the space after it, if there are any. NULL: they have another form. */
static const char *take_method(const char *text, struct route_key *key)
{
	size_t length = strspn(text, METHOD_LETTERS);

	if (*text == '/')
		return text;
	if (!length || length >= ROUTE_METHOD || text[length] != ' ')
		return NULL;
	memcpy(key->method, text, length);
	return text + length + 1;
}

/* A request's path has no such bytes. */
static int is_of_path(const char *path, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)path[i];

		if (byte <= ' ' || byte >= 0x7f || byte == '?' || byte == '*')
			return 0;
	}
	return *path == '/';
}

const char *route_parse(const char *text, struct route_key *ret_key)
{
	struct route_key key = {};
	const char *path = take_method(text, &key);
	size_t length, whole;

	if (!path && strspn(text, METHOD_LETTERS) >= ROUTE_METHOD)
		return ROUTE_LONG;
	if (!path || !*path)
		return ROUTE_FORM;
	whole = strlen(path);
	length = whole - (path[whole - 1] == '*');
	if (!length || !is_of_path(path, length))
		return ROUTE_FORM;
	if (length > ROUTE_PATH_LIMIT)
		return ROUTE_LONG;
	memcpy(key.path, path, length);
	/* The 0 after the path belongs to the key of a whole one. */
	key.bits = ROUTE_BITS((uint32_t)length + (length == whole));
	*ret_key = key;
	return NULL;
}

int routes_fill(int trie_fd, const char *const *routes, size_t count)
{
	for (uint32_t row = 0; row < count; row++) {
		struct route_found found = {.row = row};
		struct route_key key;

		if (route_parse(routes[row], &key))
			return -EINVAL;
		found.bits = key.bits;
		if (bpf_map_update_elem(trie_fd, &key, &found, BPF_NOEXIST))
			return -errno;
	}
	return 0;
}
