/* SPDX-License-Identifier: MIT */
/*
 * The interface of every output of an observation: the loop and the top layer know no more of them. A sink's own
 * structure begins with struct sink.
 */
#ifndef OBSERVER_SINKS_SINK_H
#define OBSERVER_SINKS_SINK_H

#include "model/snapshot.h"
#include "sojourn/cleanup.h"

struct sink;

/* All but close() may be NULL: then there is nothing to do. Results are 0 or -errno. */
struct sink_operations {
	/* An interval has ended. */
	int (*interval)(struct sink *sink);
	/* A descriptor that is polled for reading. */
	int (*fd)(const struct sink *sink);
	/* Milliseconds until run() must be called; -1: no limit. */
	int (*timeout_ms)(const struct sink *sink);
	/* After each wait; @revents are the descriptor's. -ECANCELED: the user wants to end. */
	int (*run)(struct sink *sink, short revents);
	/* The terminal has another size. */
	void (*resize)(struct sink *sink);
	/* Take the last reading, which is complete. A sink without end() is closed before that reading. */
	int (*end)(struct sink *sink, struct run *run);
	void (*close)(struct sink *sink);
};

struct sink {
	const struct sink_operations *operations;
	const char *url; /* where it answers; NULL: nowhere */
	int locked; /* -errno: nothing can be changed through it, as its token could not be stored */
};

static inline int sink_interval(struct sink *sink)
{
	return sink->operations->interval ? sink->operations->interval(sink) : 0;
}

/* -1: none. */
static inline int sink_fd(const struct sink *sink)
{
	return sink->operations->fd ? sink->operations->fd(sink) : -1;
}

static inline int sink_timeout_ms(const struct sink *sink)
{
	return sink->operations->timeout_ms ? sink->operations->timeout_ms(sink) : -1;
}

static inline int sink_run(struct sink *sink, short revents)
{
	return sink->operations->run ? sink->operations->run(sink, revents) : 0;
}

static inline void sink_resize(struct sink *sink)
{
	if (sink->operations->resize)
		sink->operations->resize(sink);
}

static inline int sink_end(struct sink *sink, struct run *run)
{
	return sink->operations->end ? sink->operations->end(sink, run) : 0;
}

static inline void sink_close(struct sink *sink)
{
	if (sink)
		sink->operations->close(sink);
}
DEFINE_CLEANUP(struct sink *, sink_close)
#define autosink CLEANUP(cleanup_sink_close)

#endif
