// SPDX-License-Identifier: MIT
/* Operations out of bytes; see text.h. */
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sojourn/cleanup.h"

/* INFO lists all servers of a cluster. */
#define LINE_MAX_BYTES ((size_t)256 << 10)
/* No server can be configured to carry more. */
#define PAYLOAD_MAX ((size_t)64 << 20)

#define END	   "\r\n"
#define END_LENGTH (sizeof(END) - 1)
#define BLANKS	   " \t"

/* MSG <subject> <subscription> [reply] <bytes> */
#define MSG_WORDS_MIN 3U
#define MSG_WORDS_MAX 4U

struct word {
	const char *text;
	size_t length;
};

int nats_input_add(struct nats_input *input, const char *bytes, size_t length)
{
	if (input->begin && input->length)
		memmove(input->bytes, input->bytes + input->begin, input->length);
	input->begin = 0;
	if (input->length + length > input->capacity) {
		size_t capacity = 2 * (input->length + length);
		char *grown = realloc(input->bytes, capacity);

		if (!grown)
			return -ENOMEM;
		input->bytes = grown;
		input->capacity = capacity;
	}
	if (length)
		memcpy(input->bytes + input->length, bytes, length);
	input->length += length;
	return 0;
}

void nats_input_advance(struct nats_input *input, size_t length)
{
	input->begin += length;
	input->length -= length;
}

/* Return how many words there are, of which up to @max are stored. */
static size_t split(struct word line, size_t max, struct word *ret_words)
{
	const char *at = line.text, *end = line.text + line.length;
	size_t count = 0;

	for (;;) {
		const char *begin;

		while (at < end && strchr(BLANKS, *at))
			at++;
		if (at == end)
			return count;
		for (begin = at; at < end && !strchr(BLANKS, *at);)
			at++;
		if (count < max)
			ret_words[count] = (struct word){begin, (size_t)(at - begin)};
		count++;
	}
}

static int parse_length(struct word word, size_t *ret_length)
{
	size_t length = 0;

	for (size_t i = 0; i < word.length; i++) {
		if (word.text[i] < '0' || word.text[i] > '9' || length > PAYLOAD_MAX)
			return -EBADMSG;
		length = 10 * length + (size_t)(word.text[i] - '0');
	}
	if (!word.length || length > PAYLOAD_MAX)
		return -EBADMSG;
	*ret_length = length;
	return 0;
}

/* The rest of the line follows MSG; its payload is to follow the line. */
static int take_msg(struct nats_input *input, struct word rest, size_t line_length,
		    struct nats_operation *operation)
{
	struct word words[MSG_WORDS_MAX];
	size_t count = split(rest, MSG_WORDS_MAX, words), length;
	const char *payload = input->bytes + input->begin + line_length;

	if (count < MSG_WORDS_MIN || count > MSG_WORDS_MAX ||
	    parse_length(words[count - 1], &length))
		return -EBADMSG;
	if (input->length < line_length + length + END_LENGTH)
		return 0;
	if (memcmp(payload + length, END, END_LENGTH) != 0)
		return -EBADMSG;
	operation->text = words[0].text;
	operation->text_length = words[0].length;
	operation->payload = payload;
	operation->payload_length = length;
	nats_input_advance(input, line_length + length + END_LENGTH);
	return 1;
}

static int take_plain(struct nats_input *input, struct word rest, size_t line_length,
		      struct nats_operation *operation)
{
	while (rest.length && strchr(BLANKS, *rest.text)) {
		rest.text++;
		rest.length--;
	}
	operation->text = rest.text;
	operation->text_length = rest.length;
	nats_input_advance(input, line_length);
	return 1;
}

static const struct {
	const char *name;
	enum nats_verb verb;
	int (*take)(struct nats_input *input, struct word rest, size_t line_length,
		    struct nats_operation *operation);
} verbs[] = {
	{"MSG", NATS_MSG, take_msg},	 {"INFO", NATS_INFO, take_plain},
	{"PING", NATS_PING, take_plain}, {"PONG", NATS_PONG, take_plain},
	{"+OK", NATS_OK, take_plain},	 {"-ERR", NATS_ERR, take_plain},
};

int nats_input_take(struct nats_input *input, struct nats_operation *ret_operation)
{
	const char *begin = input->length ? input->bytes + input->begin : NULL;
	size_t looked = input->length < LINE_MAX_BYTES ? input->length : LINE_MAX_BYTES;
	const char *end = begin ? memmem(begin, looked, END, END_LENGTH) : NULL;
	struct nats_operation operation = {0};
	struct word name;

	if (!end)
		return looked == LINE_MAX_BYTES ? -EBADMSG : 0;
	if (!split((struct word){begin, (size_t)(end - begin)}, 1, &name))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const char *rest = name.text + name.length;
		int taken;

		if (strlen(verbs[i].name) != name.length ||
		    strncasecmp(verbs[i].name, name.text, name.length) != 0)
			continue;
		operation.verb = verbs[i].verb;
		taken = verbs[i].take(input, (struct word){rest, (size_t)(end - rest)},
				      (size_t)(end - begin) + END_LENGTH, &operation);
		if (taken == 1)
			*ret_operation = operation;
		return taken;
	}
	return -EBADMSG;
}

void nats_input_clear(struct nats_input *input)
{
	free(input->bytes);
	*input = (struct nats_input){0};
}

bool nats_is_subject(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at >= 0x7f)
			return false;
	return *text;
}
