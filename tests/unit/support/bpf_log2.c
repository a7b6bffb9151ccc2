// SPDX-License-Identifier: MIT
/* Compiles wire/buckets.h as clang does for -target bpf, to compare it with the native one. */
#define __bpf__ 1
#include "wire/buckets.h"

#include "bpf_log2.h"

uint32_t bpf_bucket_log2(uint64_t value)
{
	return bucket_log2(value);
}

uint32_t bpf_bucket_index(uint64_t value)
{
	return bucket_index(value);
}
