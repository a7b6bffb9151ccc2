// SPDX-License-Identifier: MIT
/*
 * Metrics for OpenTelemetry: an ExportMetricsServiceRequest in JSON (OTLP 1.x, JSON Protobuf
 * Encoding), with 64-bit integers as text and enumerations as numbers. Metrics: metrics.c.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "output.h"
#include "sojourn/autojson.h"
#include "sojourn/clock.h"
#include "sojourn/text.h"

/* AGGREGATION_TEMPORALITY_CUMULATIVE: counts since startTimeUnixNano. */
#define CUMULATIVE 2

struct exporter {
	json_t *metrics;
	json_t *points; /* of the current family; borrowed */
	const struct metrics_family *family;
	json_t *bounds; /* of every histogram, in seconds; NULL: none yet */
	uint64_t start_ns;
	uint64_t now_ns;
	bool failed; /* no memory */
};

static json_t *integer(uint64_t value)
{
	return json_sprintf("%" PRIu64, value);
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / (double)NSEC_PER_SEC);
}

static const char *unit_of(const struct metrics_family *family)
{
	static const char *const units[] = {
		[METRICS_ONE] = "1",
		[METRICS_SECONDS] = "s",
		[METRICS_BYTES] = "By",
	};

	return units[family->unit];
}

/* Return an empty list of points in the object of their kind. */
static json_t *data_of(enum metrics_type type)
{
	switch (type) {
	case METRICS_COUNTER:
		return json_pack("{s:i, s:b, s:[]}", "aggregationTemporality", CUMULATIVE,
				 "isMonotonic", 1, "dataPoints");
	case METRICS_HISTOGRAM:
		return json_pack("{s:i, s:[]}", "aggregationTemporality", CUMULATIVE, "dataPoints");
	default:
		return json_pack("{s:[]}", "dataPoints");
	}
}

static void tell_family(void *context, const struct metrics_family *family)
{
	static const char *const kinds[] = {
		[METRICS_COUNTER] = "sum",
		[METRICS_GAUGE] = "gauge",
		[METRICS_HISTOGRAM] = "histogram",
	};
	struct exporter *e = context;
	json_t *data = data_of(family->type);
	json_t *metric =
		json_pack("{s:s, s:s, s:s, s:o}", "name", family->name, "description", family->help,
			  "unit", unit_of(family), kinds[family->type], data);

	e->family = family;
	e->points = metric ? json_object_get(data, "dataPoints") : NULL;
	if (!metric || json_array_append_new(e->metrics, metric)) {
		e->points = NULL;
		e->failed = true;
	}
}

static json_t *attribute(const char *key, const char *value)
{
	return json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue", json_string(value));
}

/* Return the members of every point; NULL without memory. A gauge has no start time. */
static json_t *point_of(const struct exporter *e, const struct metrics_labels *labels)
{
	autojson json_t *point =
		json_pack("{s:o, s:[]}", "timeUnixNano", integer(e->now_ns), "attributes");
	json_t *attributes = json_object_get(point, "attributes");

	if (!point || (e->family->type != METRICS_GAUGE &&
		       json_object_set_new(point, "startTimeUnixNano", integer(e->start_ns))))
		return NULL;
	for (size_t i = 0; i < labels->count; i++)
		if (json_array_append_new(attributes,
					  attribute(labels->list[i].name, labels->list[i].value)))
			return NULL;
	return TAKE_PTR(point);
}

static void add_point(struct exporter *e, json_t *point)
{
	if (json_array_append_new(e->points, point))
		e->failed = true;
}

static void tell_number(void *context, const struct metrics_labels *labels, uint64_t value)
{
	struct exporter *e = context;
	autojson json_t *point = point_of(e, labels);
	bool real = e->family->unit == METRICS_SECONDS;

	if (!point || json_object_set_new(point, real ? "asDouble" : "asInt",
					  real ? seconds(value) : integer(value)))
		e->failed = true;
	else
		add_point(e, TAKE_PTR(point));
}

/* Convert our cumulative counts to OTLP's, per bucket: above the previous edge, up to its own. */
static json_t *bucket_counts(const struct metrics_edges *edges, uint64_t count)
{
	autojson json_t *counts = json_array();
	uint64_t before = 0;

	for (unsigned int i = 0; i <= edges->count; i++) {
		uint64_t up_to = i < edges->count ? edges->below[i] : count;

		if (json_array_append_new(counts, integer(up_to > before ? up_to - before : 0)))
			return NULL;
		before = up_to;
	}
	return TAKE_PTR(counts);
}

static json_t *edge_bounds(const struct metrics_edges *edges)
{
	autojson json_t *bounds = json_array();

	for (unsigned int i = 0; i < edges->count; i++)
		if (json_array_append_new(bounds, seconds(metrics_edge_ns(edges->buckets, i))))
			return NULL;
	return TAKE_PTR(bounds);
}

static void tell_histogram(void *context, const struct metrics_labels *labels,
			   const struct metrics_edges *edges, const struct histogram *h)
{
	struct exporter *e = context;
	autojson json_t *point = point_of(e, labels);

	if (!e->bounds)
		e->bounds = edge_bounds(edges);
	if (!point || json_object_set_new(point, "count", integer(h->count)) ||
	    json_object_set_new(point, "sum", seconds(h->sum)) ||
	    json_object_set_new(point, "bucketCounts", bucket_counts(edges, h->count)) ||
	    json_object_set(point, "explicitBounds", e->bounds))
		e->failed = true;
	else
		add_point(e, TAKE_PTR(point));
}

/* OpenTelemetry's names for the source of all metrics. A host or kernel that is not known is left out. */
static json_t *resource_of(const struct run *run)
{
	autofree char *host = run->host ? strdup(run->host) : NULL;
	autojson json_t *attributes = json_array();
	const char *const pairs[][2] = {
		{"service.name", "sojourn"}, {"service.version", SOJOURN_VERSION},
		{"host.name", host},	     {"os.type", "linux"},
		{"os.version", run->kernel},
	};

	if (run->host && !host)
		return NULL;
	if (host)
		text_make_utf8(host);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i][1] &&
		    json_array_append_new(attributes, attribute(pairs[i][0], pairs[i][1])))
			return NULL;
	return json_pack("{s:O}", "attributes", attributes);
}

char *metrics_otlp(struct metrics *metrics, const struct run *run, uint64_t start_ns,
		   uint64_t now_ns)
{
	autojson json_t *list = json_array(), *request = NULL;
	struct exporter e = {.metrics = list, .start_ns = start_ns, .now_ns = now_ns};
	struct metrics_output out = {&e, tell_family, tell_number, tell_histogram};
	struct metrics_place place = {0};

	if (!list)
		return NULL;
	while (metrics_tell_part(metrics, run, &place, &out))
		;
	json_decref(e.bounds);
	if (!e.failed)
		request = json_pack("{s:[{s:o, s:[{s:{s:s, s:s}, s:O}]}]}", "resourceMetrics",
				    "resource", resource_of(run), "scopeMetrics", "scope", "name",
				    "sojourn", "version", SOJOURN_VERSION, "metrics", list);
	return request ? json_dumps(request, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
}
