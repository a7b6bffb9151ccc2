// SPDX-License-Identifier: MIT
/* The counts of one worker. stats_record() runs for every request. */
#include "stats.h"

#include <math.h>
#include <string.h>

#include "sojourn/run_sum.h"

/* Once per kind and interval: wording costs more than counting. */
static void record_first(struct stats *stats, enum run_error error,
			 const struct engine_result *result)
{
	char *text = stats->error_detail[error];

	stats->first_error_ns[error] = result->end_ns;
	text[0] = '\0';
	if (result->tell)
		result->tell(result, text, STATS_DETAIL_SIZE);
	else
		engine_tell_result(result, text, STATS_DETAIL_SIZE);
}

static void record_error(struct stats *stats, enum run_error error,
			 const struct engine_result *result)
{
	if (!stats->errors[error]++)
		record_first(stats, error, result);
	stats->last_error_ns[error] = result->end_ns;
}

static void record_complete(struct stats *stats, const struct engine_result *result)
{
	unsigned int hundreds = result->status / 100;
	enum run_error failure = engine_failure(result);

	stats->requests++;
	stats->status[hundreds < ARRAY_SIZE(stats->status) ? hundreds : 0]++;
	if (result->grpc)
		stats->grpc[result->grpc - 1]++;
	if (result->streams - 1 < stats->streams - 1) /* 0, "not known", wraps to the largest */
		stats->streams = result->streams;
	if (failure != RUN_NO_ERROR)
		record_error(stats, failure, result);
	histogram_record(&stats->round_trip, result->end_ns - result->start_ns);
	if (result->first_ns)
		histogram_record(&stats->first_byte, result->first_ns - result->start_ns);
}

void stats_record(struct stats *stats, const struct engine_result *result)
{
	if (result->end_ns > stats->last_ns)
		stats->last_ns = result->end_ns;
	stats->bytes_in += result->bytes_in;
	stats->bytes_out += result->bytes_out;
	stats->messages_sent += result->messages_sent;
	stats->messages_received += result->messages_received;
	if (result->error == RUN_NO_ERROR)
		record_complete(stats, result);
	else
		record_error(stats, result->error, result);
}

void stats_record_response(struct stats *stats, const struct engine_result *result,
			   uint64_t intended_ns)
{
	if (result->error == RUN_NO_ERROR)
		histogram_record(&stats->response_time, result->end_ns - intended_ns);
}

void stats_record_connect(struct stats *stats, uint64_t connect_ns)
{
	stats->connects++;
	histogram_record(&stats->connect, connect_ns);
}

static void add_error_times(struct stats *stats, const struct stats *other)
{
	for (size_t i = 0; i < RUN_ERROR_COUNT; i++) {
		if (!other->errors[i])
			continue;
		if (!stats->errors[i] || other->first_error_ns[i] < stats->first_error_ns[i]) {
			stats->first_error_ns[i] = other->first_error_ns[i];
			memcpy(stats->error_detail[i], other->error_detail[i], STATS_DETAIL_SIZE);
		}
		if (other->last_error_ns[i] > stats->last_error_ns[i])
			stats->last_error_ns[i] = other->last_error_ns[i];
	}
}

void stats_add(struct stats *stats, const struct stats *other)
{
	stats->requests += other->requests;
	stats->connects += other->connects;
	stats->bytes_in += other->bytes_in;
	stats->bytes_out += other->bytes_out;
	stats->messages_sent += other->messages_sent;
	stats->messages_received += other->messages_received;
	run_counts_add(stats->status, other->status, ARRAY_SIZE(stats->status));
	run_counts_add(stats->grpc, other->grpc, ARRAY_SIZE(stats->grpc));
	if (other->streams - 1 < stats->streams - 1)
		stats->streams = other->streams;
	add_error_times(stats, other);
	run_counts_add(stats->errors, other->errors, ARRAY_SIZE(stats->errors));
	run_counts_add(stats->datagrams, other->datagrams, ARRAY_SIZE(stats->datagrams));
	if (other->last_ns > stats->last_ns)
		stats->last_ns = other->last_ns;
	histogram_add(&stats->late, &other->late);
	histogram_add(&stats->round_trip, &other->round_trip);
	histogram_add(&stats->connect, &other->connect);
	histogram_add(&stats->tls, &other->tls);
	histogram_add(&stats->first_byte, &other->first_byte);
	stats->scheduled += other->scheduled;
	stats->unsent += other->unsent;
	histogram_add(&stats->response_time, &other->response_time);
	histogram_add(&stats->schedule_delay, &other->schedule_delay);
}

uint64_t stats_errors(const struct stats *stats)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < RUN_ERROR_COUNT; i++)
		sum += stats->errors[i];
	return sum;
}

void stats_record_late(struct stats *stats, uint64_t late_ns)
{
	histogram_record(&stats->late, late_ns);
}

uint64_t stats_drained(const struct stats *stats, uint64_t duration_ns)
{
	uint64_t within = stats->requests - stats->late.count, count = within;
	double length_ns = (double)duration_ns, most = (double)within;

	for (unsigned int i = 0; i < BUCKET_COUNT && count < stats->requests && duration_ns; i++) {
		uint64_t edge_ns = bucket_upper(i);

		if (!stats->late.buckets[i])
			continue;
		count += stats->late.buckets[i];
		if (edge_ns > stats->late.max)
			edge_ns = stats->late.max;
		most = fmax(most, (double)count * length_ns / (length_ns + (double)edge_ns));
	}
	return stats->requests - (uint64_t)(most + 0.5);
}
