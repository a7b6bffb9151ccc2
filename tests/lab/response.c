// SPDX-License-Identifier: MIT
/* From pieces of a response to iovecs, and into the socket. */
#include "response.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "sojourn/cleanup.h"

#define FILLER_SIZE 65536
#define MAX_VECTORS 16
#define CHUNK_END   "\r\n"

/* Constant, so that all connections and processes share its pages. */
#define X16(x) x x x x x x x x x x x x x x x x
static const char filler[FILLER_SIZE + 1] = X16(X16(X16("xxxxxxxxxxxxxxxx")));

struct part {
	const char *base; /* NULL: filler */
	uint64_t length;
};

enum {
	PART_HEAD,
	PART_CHUNK_HEADER,
	PART_BODY,
	PART_CHUNK_END,
	PART_TAIL,
	PART_COUNT
};

struct piece {
	char chunk_header[20];
	struct part parts[PART_COUNT];
	uint64_t length;
};

static uint64_t body_offset(const struct response *response, uint64_t piece)
{
	/* At most 64 MiB x 1000: far from overflow. */
	return response->body_length * piece / response->pieces;
}

static void add_chunk_framing(struct piece *piece, uint64_t length)
{
	int header = snprintf(piece->chunk_header, sizeof(piece->chunk_header), "%llx\r\n",
			      (unsigned long long)length);

	piece->parts[PART_CHUNK_HEADER] = (struct part){piece->chunk_header, (uint64_t)header};
	piece->parts[PART_CHUNK_END] = (struct part){CHUNK_END, strlen(CHUNK_END)};
}

static void get_piece(const struct response *response, uint64_t index, struct piece *piece)
{
	uint64_t begin = body_offset(response, index), end = body_offset(response, index + 1);

	memset(piece->parts, 0, sizeof(piece->parts));
	if (index == 0)
		piece->parts[PART_HEAD] = (struct part){response->head, response->head_length};
	/* A chunk of length 0 would end the body. */
	if (response->chunked && end > begin)
		add_chunk_framing(piece, end - begin);
	piece->parts[PART_BODY] =
		(struct part){response->body ? response->body + begin : NULL, end - begin};
	if (index == response->pieces - 1)
		piece->parts[PART_TAIL] = (struct part){response->tail, response->tail_length};
	piece->length = 0;
	for (int i = 0; i < PART_COUNT; i++)
		piece->length += piece->parts[i].length;
}

static uint64_t total_length(const struct response *response)
{
	struct piece piece;
	uint64_t total = 0;

	if (!response->chunked)
		return response->head_length + response->body_length + response->tail_length;
	for (uint64_t i = 0; i < response->pieces; i++) {
		get_piece(response, i, &piece);
		total += piece.length;
	}
	return total;
}

void response_init(struct response *response, bool half)
{
	if (response->pieces > response->body_length)
		response->pieces = response->body_length ? response->body_length : 1;
	response->piece = 0;
	response->piece_sent = 0;
	response->left = total_length(response);
	if (half)
		response->left /= 2;
}

/* Append @part without its first @skip bytes, at most @limit bytes; return how many. */
static uint64_t append_part(const struct part *part, uint64_t skip, uint64_t limit,
			    struct iovec *vectors, size_t *count)
{
	uint64_t wanted = part->length - skip, taken = 0;

	if (wanted > limit)
		wanted = limit;
	while (taken < wanted && *count < MAX_VECTORS) {
		uint64_t length = wanted - taken;

		if (!part->base && length > FILLER_SIZE)
			length = FILLER_SIZE;
		/* sendmsg() only reads, which struct iovec cannot express. */
		vectors[(*count)++] = (struct iovec){
			.iov_base = (void *)(part->base ? part->base + skip + taken : filler),
			.iov_len = length,
		};
		taken += length;
	}
	return taken;
}

static size_t fill_vectors(const struct response *response, const struct piece *piece,
			   struct iovec *vectors)
{
	uint64_t skip = response->piece_sent, limit = response->left;
	size_t count = 0;

	for (int i = 0; i < PART_COUNT && limit; i++) {
		const struct part *part = &piece->parts[i];

		if (skip >= part->length) {
			skip -= part->length;
			continue;
		}
		limit -= append_part(part, skip, limit, vectors, &count);
		skip = 0;
	}
	return count;
}

static int advance(struct response *response, const struct piece *piece, uint64_t bytes)
{
	response->left -= bytes;
	response->piece_sent += bytes;
	if (!response->left)
		return RESPONSE_DONE;
	if (response->piece_sent < piece->length)
		return RESPONSE_MORE;
	response->piece++;
	response->piece_sent = 0;
	return RESPONSE_PIECE;
}

int response_send(struct response *response, int fd, const union address *to, uint64_t *ret_bytes)
{
	struct iovec vectors[MAX_VECTORS];
	struct msghdr message = {
		.msg_name = (void *)to,
		.msg_namelen = to ? sizeof(*to) : 0,
		.msg_iov = vectors,
	};
	struct piece piece;
	ssize_t sent;

	get_piece(response, response->piece, &piece);
	message.msg_iovlen = fill_vectors(response, &piece, vectors);
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	*ret_bytes = (uint64_t)sent;
	return advance(response, &piece, (uint64_t)sent);
}
