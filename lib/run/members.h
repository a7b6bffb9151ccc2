/* SPDX-License-Identifier: MIT */
/*
 * The members of the run document as tables, one per structure: writer, reader, JSON Schema and the check of
 * docs/run-document.md all follow them. A new member is a row here and a row in the document.
 */
#ifndef LIB_RUN_MEMBERS_H
#define LIB_RUN_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

/* How a member is kept in memory; each kind has one function in json/write.c, json/read.c, json/schema.c and fields.c. */
enum run_kind {
	RUN_KIND_U64,	   /* uint64_t, 0 … 2^63 - 1 */
	RUN_KIND_U32,	   /* uint32_t */
	RUN_KIND_U16,	   /* uint16_t */
	RUN_KIND_BOOL,	   /* bool */
	RUN_KIND_NUMBER,   /* struct run_number; null if not known */
	RUN_KIND_SIGNED,   /* struct run_signed; null if not known */
	RUN_KIND_RATIO,	   /* struct run_ratio; null if not known */
	RUN_KIND_STRING,   /* char *; null if NULL */
	RUN_KIND_TEXT,	   /* char[size] */
	RUN_KIND_STRINGS,  /* NULL-terminated char **; null if NULL */
	RUN_KIND_COUNTERS, /* uint64_t[size], an object with a member for each of @names */
	RUN_KIND_NUMBERS,  /* struct run_number[size] likewise; null where not known */
	RUN_KIND_STATUSES, /* uint64_t[RUN_STATUS_COUNT], pairs of a status and its count where there is one */
	RUN_KIND_HISTOGRAM,
	RUN_KIND_STAGES,  /* struct run_stage[size], an object with a member for each of @names */
	RUN_KIND_OBJECT,  /* the structure itself, with @members */
	RUN_KIND_POINTER, /* pointer to a structure with @members; null if NULL */
	RUN_KIND_LIST,	  /* pointer to structures with @members, their number at @count_offset */
	RUN_KIND_SAMPLES, /* pointer to struct run_samples, in columns; null if NULL */
	RUN_KIND_SERIES,  /* pointer to struct run_series, likewise */
	RUN_KIND_COUNT
};

/* What becomes of a member when two drivers' documents are made one: merge_driver.c. */
enum run_merging {
	/* Numbers, counters and histograms add; of strings that differ nothing is left; true and
	 * false are refused. */
	RUN_MERGING_BY_KIND,
	RUN_MERGING_LARGEST,
	RUN_MERGING_SAME,  /* refused if they differ */
	RUN_MERGING_FIRST, /* the first that is there */
	RUN_MERGING_OWN,   /* by code of its own */
};

struct run_members;

struct run_member {
	const char *name;
	enum run_kind kind;
	enum run_merging merging; /* of members of struct run_driver */
	bool counts;   /* grows from reading to reading: a period is a difference, two are a sum */
	bool lasting;  /* known or not in all readings alike: NUMBER */
	bool optional; /* may be absent or null; reads as zero, NULL, empty or not known */
	/* TEXT, POINTER, LIST, U64, OBJECT by its first member: likewise, and not written where there is nothing */
	bool sparse;
	size_t offset;
	size_t size; /* TEXT: capacity; those with names: their number */
	const char *const *names;
	const struct run_members *members;
	size_t count_offset;
	size_t limit; /* LIST, STRINGS: most elements that are read */
};

struct run_members {
	size_t size; /* of the structure */
	const struct run_member *list;
	size_t count;
};

extern const struct run_members run_driver_members;
extern const struct run_members run_row_members;
extern const struct run_members run_interval_members;
extern const struct run_members run_service_members;
extern const struct run_members run_cost_members;
extern const struct run_members run_machine_members;
extern const struct run_members run_program_members;
extern const struct run_members run_joined_members;
extern const struct run_members run_sweep_step_members;
/* struct run; besides these, `schema` and `buckets` stand at the top. */
extern const struct run_members run_document_members;

/* fields.c: frees what a structure points to; that is empty then, its numbers are as they were. */
void members_free(const struct run_members *members, void *structure);
/* So do all of @count structures, and their array. */
void members_free_list(const struct run_members *members, void *list, size_t count);

/* Of those members that count. A stage's reason may be taken from @other. */
void members_subtract(const struct run_members *members, void *structure, const void *earlier);
void members_add(const struct run_members *members, void *structure, void *other);
/* Whether there is nothing in them: to subtract such a structure changes nothing. */
bool members_are_zero(const struct run_members *members, const void *structure);

/*
 * The longest text that is read, and the most objects and arrays in it: far above any real document
 * (a service with every bucket of every stage in use has 15,680 pairs), far below what would make
 * a reader run out of memory.
 */
#define RUN_TEXT_LIMIT	    (32U << 20)
#define RUN_CONTAINER_LIMIT (1U << 20)

/* What "buckets" says of the layout of wire/buckets.h. */
#define RUN_BUCKET_LAYOUT "log-linear"

#endif
