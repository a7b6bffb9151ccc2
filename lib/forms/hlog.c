// SPDX-License-Identifier: MIT
/*
 * The driver's latency as an HdrHistogram log (".hlog", format version 1.3, payloads V2
 * compressed), a line per interval or one for the run.
 *
 * HdrHistogram with 2 significant digits cuts each power of two into 128 parts, twice as many as
 * wire/buckets.h, at the same edges. Buckets are written at their upper edges, so that readers
 * compute our percentiles; the highest used one at the maximum.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"

#define COOKIE		  0x1c849313U /* V2, 64-bit words */
#define COOKIE_COMPRESSED 0x1c849314U
#define DIGITS		  2
#define HALF_BITS	  7 /* cells per power of two: 2^7, the first power not below 10^DIGITS */
#define HALF		  (1U << HALF_BITS)
#define HIGHEST		  (1ULL << 42)
#define CELLS		  ((42 - HALF_BITS) * HALF + HALF)
#define VARINT_MAX	  9
#define HEADER		  40

struct bytes {
	size_t length;
	uint8_t data[HEADER + CELLS * VARINT_MAX];
};

static void put_u32(struct bytes *bytes, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		bytes->data[bytes->length++] = (uint8_t)(value >> shift);
}

static void put_u64(struct bytes *bytes, uint64_t value)
{
	put_u32(bytes, (uint32_t)(value >> 32));
	put_u32(bytes, (uint32_t)value);
}

/* Write ZigZag LEB128; the ninth byte has 8 bits. */
static void put_varint(struct bytes *bytes, int64_t number)
{
	uint64_t value = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);

	for (int i = 0; i < VARINT_MAX - 1 && value >> 7; i++, value >>= 7)
		bytes->data[bytes->length++] = (uint8_t)(value | 0x80);
	bytes->data[bytes->length++] = (uint8_t)value;
}

/* Return the cell of @value: one each below 256, then 128 for each power of two. */
static uint32_t cell_of(uint64_t value)
{
	uint32_t octave;

	if (value >= HIGHEST)
		value = HIGHEST - 1;
	octave = 63U - (uint32_t)__builtin_clzll(value | (2 * HALF - 1)) - HALF_BITS;
	return (octave << HALF_BITS) + (uint32_t)(value >> octave);
}

/* Write runs of zeros as one negative number, except at the end. */
static void put_cells(struct bytes *bytes, const uint64_t cells[static CELLS])
{
	int64_t zeros = 0;

	for (uint32_t i = 0; i < CELLS; i++) {
		if (!cells[i]) {
			zeros++;
			continue;
		}
		if (zeros)
			put_varint(bytes, -zeros);
		put_varint(bytes, (int64_t)cells[i]);
		zeros = 0;
	}
}

static int encode(const struct histogram *h, struct bytes *bytes)
{
	autofree uint64_t *cells = calloc(CELLS, sizeof(*cells));
	struct bytes length = {0};
	double ratio = 1;
	uint64_t ratio_bits;

	if (!cells)
		return -ENOMEM;
	memcpy(&ratio_bits, &ratio, sizeof(ratio));
	for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
		uint64_t value = bucket_upper(i) < h->max ? bucket_upper(i) : h->max;

		if (h->buckets[i])
			cells[cell_of(i == BUCKET_COUNT - 1 ? h->max : value)] += h->buckets[i];
	}
	bytes->length = 0;
	put_u32(bytes, COOKIE);
	put_u32(bytes, 0); /* length of the cells, filled in below */
	put_u32(bytes, 0); /* normalizing index offset */
	put_u32(bytes, DIGITS);
	put_u64(bytes, 1); /* lowest value distinguished from 0 */
	put_u64(bytes, HIGHEST - 1);
	put_u64(bytes, ratio_bits);
	put_cells(bytes, cells);
	put_u32(&length, (uint32_t)(bytes->length - HEADER));
	memcpy(bytes->data + 4, length.data, 4);
	return 0;
}

static void print_base64(const uint8_t *data, size_t length, FILE *file)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t three = (uint32_t)data[i] << 16 | (left > 1 ? data[i + 1] << 8 : 0) |
				 (left > 2 ? data[i + 2] : 0);

		fputc(digits[three >> 18], file);
		fputc(digits[three >> 12 & 63], file);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', file);
		fputc(left > 2 ? digits[three & 63] : '=', file);
	}
}

static int print_histogram(const struct histogram *h, struct bytes *plain, FILE *file)
{
	autofree struct bytes *packed = calloc(1, sizeof(*packed));
	uLongf length;
	int err = packed ? encode(h, plain) : -ENOMEM;

	if (err)
		return err;
	put_u32(packed, COOKIE_COMPRESSED);
	length = sizeof(packed->data) - 8;
	if (compress2(packed->data + 8, &length, plain->data, plain->length, Z_BEST_COMPRESSION) !=
	    Z_OK)
		return -ENOMEM;
	put_u32(packed, (uint32_t)length);
	print_base64(packed->data, 8 + length, file);
	return 0;
}

/* Write seconds from the start, and the maximum in ms, as the format requires. */
static int print_line(uint64_t begin_ns, uint64_t duration_ns, const struct histogram *h,
		      struct bytes *scratch, FILE *file)
{
	int err;

	fprintf(file, "%.3f,%.3f,%.3f,", (double)begin_ns / 1e9, (double)duration_ns / 1e9,
		(double)h->max / 1e6);
	err = print_histogram(h, scratch, file);
	fputc('\n', file);
	return err;
}

static void print_head(const struct run *run, FILE *file)
{
	double start = (double)run->driver->begin_ns / (double)NSEC_PER_SEC;

	fprintf(file, "#[Logged with %s]\n", run->tool ? run->tool : "sojourn");
	fputs("#[Histogram log format version 1.3]\n", file);
	fprintf(file, "#[StartTime: %.3f (seconds since epoch)]\n", start);
	fprintf(file, "#[%s in ns]\n",
		run->driver->rate ? "Response time: intended start to last byte"
				  : "Round trip: request sent to last byte");
	fputs("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
	      "\"Interval_Compressed_Histogram\"\n",
	      file);
}

static int print_run(const struct run *run, struct bytes *scratch, FILE *file)
{
	const struct run_driver *driver = run->driver;
	int err = 0;

	print_head(run, file);
	if (!driver->interval_count)
		return print_line(0, driver->duration_ns, run_driver_latency(driver), scratch,
				  file);
	for (size_t i = 0; i < driver->interval_count && !err; i++) {
		const struct run_interval *interval = &driver->intervals[i];

		err = print_line(interval->begin_ns, interval->duration_ns, &interval->latency,
				 scratch, file);
	}
	return err;
}

int report_hlog(const struct run *run, FILE *file)
{
	autofree struct bytes *scratch = calloc(1, sizeof(*scratch));
	int err;

	if (!run->driver)
		return -ENODATA;
	err = scratch ? print_run(run, scratch, file) : -ENOMEM;
	return err ? err : ferror(file) ? -EIO : 0;
}
