// SPDX-License-Identifier: MIT
/*
 * The functions of libcurl in use, which load the library on demand. It and its 25 dependencies
 * take 4 MiB and 0.1 s, and few runs use HTTP. The program is not linked with libcurl: a function
 * missing here fails at link time.
 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sojourn/cleanup.h"

/* The headers wrap these in argument checks. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

static struct {
	CURLcode (*global_init)(long flags);
	void (*global_cleanup)(void);
	CURL *(*init)(void);
	CURLcode (*setopt)(CURL *handle, CURLoption option, ...);
	CURLcode (*perform)(CURL *handle);
	CURLcode (*getinfo)(CURL *handle, CURLINFO info, ...);
	void (*cleanup)(CURL *handle);
	const char *(*strerror)(CURLcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
} curl;

static const struct {
	const char *name;
	void *place;
} functions[] = {
	{"curl_global_init", &curl.global_init},
	{"curl_global_cleanup", &curl.global_cleanup},
	{"curl_easy_init", &curl.init},
	{"curl_easy_setopt", &curl.setopt},
	{"curl_easy_perform", &curl.perform},
	{"curl_easy_getinfo", &curl.getinfo},
	{"curl_easy_cleanup", &curl.cleanup},
	{"curl_easy_strerror", &curl.strerror},
	{"curl_slist_append", &curl.slist_append},
};

static bool loaded;

static void end(void)
{
	curl.global_cleanup();
}

static void load(void)
{
	/* A static program can only load libraries of exactly its C library. */
#ifdef SOJOURN_STATIC
	void *library = NULL;
#else
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
#endif

	for (size_t i = 0; library && i < ARRAY_SIZE(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return;
		*(void **)functions[i].place = function;
	}
	/* NOTHING: OpenSSL needs no initialisation. */
	loaded = library && !curl.global_init(CURL_GLOBAL_NOTHING) && !atexit(end);
}

/* Return NULL if the library is not available; every other function needs this one's result. */
CURL *curl_easy_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return loaded ? curl.init() : NULL;
}

/* Every argument is a pointer or a number of its size. */
CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
	va_list arguments;
	void *value;

	va_start(arguments, option);
	value = va_arg(arguments, void *);
	va_end(arguments);
	return curl.setopt(handle, option, value);
}

CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
	va_list arguments;
	void *place;

	va_start(arguments, info);
	place = va_arg(arguments, void *);
	va_end(arguments);
	return curl.getinfo(handle, info, place);
}

CURLcode curl_easy_perform(CURL *handle)
{
	return curl.perform(handle);
}

void curl_easy_cleanup(CURL *handle)
{
	if (handle)
		curl.cleanup(handle);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	return curl.slist_append(list, text);
}

const char *curl_easy_strerror(CURLcode code)
{
	return curl.strerror(code);
}
