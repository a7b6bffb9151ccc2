// SPDX-License-Identifier: MIT
/*
 * Records in chunks. A thread owns one chunk at a time. When the thread ends, the next one
 * continues in it, so that a thread per connection needs no chunk per connection.
 */
#include "truth.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "address.h"
#include "sojourn/cleanup.h"

#define CHUNK_RECORDS 1024

struct truth_chunk {
	struct truth_chunk *next;
	size_t count;
	struct exchange records[CHUNK_RECORDS];
};

struct truth {
	pthread_mutex_t lock;
	struct truth_chunk *full;
	struct truth_chunk *partial; /* without an owner */
	uint64_t chunks_left;
};

struct truth *truth_new(uint64_t limit)
{
	struct truth *truth = calloc(1, sizeof(*truth));

	if (!truth)
		return NULL;
	pthread_mutex_init(&truth->lock, NULL);
	truth->chunks_left = (limit + CHUNK_RECORDS - 1) / CHUNK_RECORDS;
	return truth;
}

static void free_chunks(struct truth_chunk *chunk)
{
	while (chunk) {
		struct truth_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void truth_free(struct truth *truth)
{
	if (!truth)
		return;
	free_chunks(truth->full);
	free_chunks(truth->partial);
	pthread_mutex_destroy(&truth->lock);
	free(truth);
}

/* Return a chunk with room; NULL at the limit or without memory. Called with the lock held. */
static struct truth_chunk *take_chunk(struct truth *truth)
{
	struct truth_chunk *chunk = truth->partial;

	if (chunk) {
		truth->partial = chunk->next;
		return chunk;
	}
	if (!truth->chunks_left)
		return NULL;
	chunk = malloc(sizeof(*chunk));
	if (chunk) {
		chunk->count = 0;
		truth->chunks_left--;
	}
	return chunk;
}

static void give_chunk(struct truth *truth, struct truth_chunk *chunk)
{
	struct truth_chunk **list = chunk->count < CHUNK_RECORDS ? &truth->partial : &truth->full;

	chunk->next = *list;
	*list = chunk;
}

void truth_writer_open(struct truth_writer *writer, struct truth *truth)
{
	*writer = (struct truth_writer){.truth = truth};
}

void truth_writer_close(struct truth_writer *writer)
{
	if (!writer->chunk)
		return;
	pthread_mutex_lock(&writer->truth->lock);
	give_chunk(writer->truth, TAKE_PTR(writer->chunk));
	pthread_mutex_unlock(&writer->truth->lock);
}

static void change_chunk(struct truth_writer *writer)
{
	struct truth *truth = writer->truth;

	pthread_mutex_lock(&truth->lock);
	if (writer->chunk)
		give_chunk(truth, writer->chunk);
	writer->chunk = take_chunk(truth);
	pthread_mutex_unlock(&truth->lock);
}

bool truth_record(struct truth_writer *writer, const struct exchange *exchange)
{
	if (!writer->truth)
		return true;
	if (!writer->chunk || writer->chunk->count == CHUNK_RECORDS)
		change_chunk(writer);
	if (!writer->chunk)
		return false;
	writer->chunk->records[writer->chunk->count++] = *exchange;
	return true;
}

/* clang-format off */
static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
	{"accept_begin_ns",      offsetof(struct exchange, accept_begin_ns)},
	{"accept_end_ns",        offsetof(struct exchange, accept_end_ns)},
	{"readable_ns",          offsetof(struct exchange, readable_ns)},
	{"first_read_begin_ns",  offsetof(struct exchange, first_read_begin_ns)},
	{"first_read_end_ns",    offsetof(struct exchange, first_read_end_ns)},
	{"last_read_end_ns",     offsetof(struct exchange, last_read_end_ns)},
	{"first_write_begin_ns", offsetof(struct exchange, first_write_begin_ns)},
	{"first_write_end_ns",   offsetof(struct exchange, first_write_end_ns)},
	{"last_write_begin_ns",  offsetof(struct exchange, last_write_begin_ns)},
	{"last_write_end_ns",    offsetof(struct exchange, last_write_end_ns)},
	{"request_bytes",        offsetof(struct exchange, request_bytes)},
	{"response_bytes",       offsetof(struct exchange, response_bytes)},
};
/* clang-format on */

int truth_write_header(int fd)
{
	autofree char *names = NULL;
	size_t size;
	FILE *text = open_memstream(&names, &size);

	if (!text)
		return -errno;
	fputs("connection,exchange,peer,local_port,pid", text);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		fprintf(text, ",%s", numbers[i].name);
	fputs(",pipelined,error\n", text);
	if (fclose(text))
		return -ENOMEM;
	return write(fd, names, size) == (ssize_t)size ? 0 : -(errno ? errno : EIO);
}

static void print_record(const struct exchange *exchange, uint16_t local_port, int pid, FILE *file)
{
	char peer[ADDRESS_TEXT];

	address_format(&exchange->peer, peer);
	fprintf(file, "%" PRIu64 ",%" PRIu64 ",%s,%u,%d", exchange->connection, exchange->index,
		peer, local_port, pid);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		fprintf(file, ",%" PRIu64,
			*(const uint64_t *)((const char *)exchange + numbers[i].offset));
	fprintf(file, ",%d,%d\n", exchange->pipelined, exchange->error);
}

static void print_chunks(const struct truth_chunk *chunk, uint16_t local_port, int pid, FILE *file)
{
	for (; chunk; chunk = chunk->next)
		for (size_t i = 0; i < chunk->count; i++)
			print_record(&chunk->records[i], local_port, pid, file);
}

int truth_write(struct truth *truth, uint16_t local_port, int pid, int fd)
{
	FILE *file = fdopen(fd, "w");
	int failed;

	if (!file) {
		int err = -errno;

		close(fd);
		return err;
	}
	print_chunks(truth->full, local_port, pid, file);
	print_chunks(truth->partial, local_port, pid, file);
	failed = ferror(file);
	if (fclose(file))
		return -errno;
	return failed ? -EIO : 0;
}
