/* SPDX-License-Identifier: MIT */
/*
 * The members of the run document, a table per structure, for the writer, the reader and the JSON
 * Schema. A new member is a row here, and a line of json/meanings.txt with its unit and meaning.
 * `tests/check/members.py --write` then puts it into docs/run-document.md.
 */
#ifndef LIB_RUN_MEMBERS_H
#define LIB_RUN_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The representation of a member in memory; json/write.c, json/read.c, json/schema.c and fields.c
 * have a function per kind.
 */
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
	RUN_KIND_COUNTERS, /* uint64_t[size], an object with a member per @names */
	RUN_KIND_NUMBERS,  /* struct run_number[size], likewise; null if not known */
	RUN_KIND_STATUSES, /* uint64_t[RUN_STATUS_COUNT], pairs [status, count] without zeros */
	RUN_KIND_HISTOGRAM,
	RUN_KIND_STAGES,  /* struct run_stage[size], an object with a member per @names */
	RUN_KIND_OBJECT,  /* the structure itself, with @members */
	RUN_KIND_POINTER, /* pointer to a structure with @members; null if NULL */
	RUN_KIND_LIST,	  /* pointer to structures with @members, count at @count_offset */
	RUN_KIND_SAMPLES, /* pointer to struct run_samples, in columns; null if NULL */
	RUN_KIND_SERIES,  /* pointer to struct run_series, likewise */
	RUN_KIND_COUNT
};

/* How merging two drivers' documents treats a member: merge_driver.c. */
enum run_merging {
	/*
	 * Numbers, counters and histograms add; differing strings are removed; true with false is
	 * refused.
	 */
	RUN_MERGING_BY_KIND,
	RUN_MERGING_LARGEST,
	RUN_MERGING_SAME,  /* differing ones are refused */
	RUN_MERGING_FIRST, /* the first one present */
	RUN_MERGING_OWN,   /* special code */
};

struct run_members;

struct run_member {
	const char *name;
	enum run_kind kind;
	enum run_merging merging; /* for members of struct run_driver */
	bool counts;   /* grows between readings: a period is a difference, periods are summed */
	bool lasting;  /* NUMBER: known in all readings or in none */
	bool optional; /* may be absent or null, read as zero, NULL, empty or not known */
	/* TEXT, POINTER, LIST, U64, OBJECT by its counts and its first member: optional, not written if empty */
	bool sparse;
	size_t offset;
	size_t size; /* TEXT: capacity; kinds with names: their number */
	const char *const *names;
	/* Kinds with names, but NUMBERS: their common name. The first one in the document has all. */
	const char *set;
	const struct run_members *members;
	size_t count_offset;
	size_t limit; /* LIST, STRINGS: maximum of elements read */
};

struct run_members {
	const char *type; /* the name of the structure in the JSON Schema */
	size_t size;	  /* of the structure */
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
extern const struct run_members run_routes_members;
extern const struct run_members run_call_members;
extern const struct run_members run_timed_call_members;
extern const struct run_members run_upstream_members;
extern const struct run_members run_joined_members;
extern const struct run_members run_sweep_step_members;
/* struct run; the top level also has `schema` and `buckets`. */
extern const struct run_members run_document_members;

/* fields.c: free everything a structure points to and reset the pointers; numbers stay. */
void members_free(const struct run_members *members, void *structure);
/* Free @count structures likewise, and their array. */
void members_free_list(const struct run_members *members, void *list, size_t count);

/* Subtract or add the members marked @counts. A stage's reason may be taken from @other. */
void members_subtract(const struct run_members *members, void *structure, const void *earlier);
void members_add(const struct run_members *members, void *structure, void *other);
/* Return whether all are zero: subtracting such a structure changes nothing. */
bool members_are_zero(const struct run_members *members, const void *structure);

/*
 * Maximum length of a text, and of objects and arrays in it. Far above any real document (a service
 * with every bucket of every stage has 15,680 pairs), far below a reader's memory.
 */
#define RUN_TEXT_LIMIT	    (32U << 20)
#define RUN_CONTAINER_LIMIT (1U << 20)

/* The layout of wire/buckets.h, as named in "buckets". */
#define RUN_BUCKET_LAYOUT "log-linear"

#endif
