// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Defines what event.h declares; no program lives here. */
#include "event.h"

struct event_failures_map event_failures SEC(".maps");
struct event_actions_map event_actions SEC(".maps");
struct event_names_map event_names SEC(".maps");

__u64 event_failures_lost = 0;
__u64 event_actions_lost = 0;

char LICENSE[] SEC("license") = "Dual MIT/GPL";
