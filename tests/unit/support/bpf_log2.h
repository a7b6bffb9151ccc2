/* SPDX-License-Identifier: MIT */
/* bucket_log2() as the kernel side compiles it. */
#ifndef UNIT_SUPPORT_BPF_LOG2_H
#define UNIT_SUPPORT_BPF_LOG2_H

#include <stdint.h>

uint32_t bpf_bucket_log2(uint64_t value);
uint32_t bpf_bucket_index(uint64_t value);

#endif
