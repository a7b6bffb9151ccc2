// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Defines what state.h declares; no program lives here. */
#include "state.h"

#include "tcp/connection/clear.h"
#include "tcp/http/answer.h"
#include "tcp/tls/clear_pushes.h"

struct conns_map conns SEC(".maps");
struct conn_places_map conn_places SEC(".maps");
struct batches_map batches SEC(".maps");
struct talks_map talks SEC(".maps");
struct tickets_map tickets SEC(".maps");
struct command_conns_map command_conns SEC(".maps");
struct pipeline_looks_map pipeline_looks SEC(".maps");
struct push_conns_map push_conns SEC(".maps");
struct answer_looks_map answer_looks SEC(".maps");
struct command_names_map command_names SEC(".maps");
struct command_rows_of_map command_rows_of SEC(".maps");
struct command_rows_map command_rows SEC(".maps");
struct commands_without_map commands_without SEC(".maps");
struct http2_conns_map http2_conns SEC(".maps");
struct streams_map streams SEC(".maps");
struct slots_map slots SEC(".maps");
struct threads_map threads SEC(".maps");
struct splits_map splits SEC(".maps");
struct statuses_map statuses SEC(".maps");
struct windows_map windows SEC(".maps");
struct route_rows_map route_rows SEC(".maps");
struct route_places_map route_places SEC(".maps");
struct route_paths_map route_paths SEC(".maps");
struct route_looks_map route_looks SEC(".maps");
struct route_texts_map route_texts SEC(".maps");
struct clear_calls_map clear_calls SEC(".maps");
struct clear_goroutines_map clear_goroutines SEC(".maps");
struct clear_conns_map clear_conns SEC(".maps");
struct clear_sockets_map clear_sockets SEC(".maps");
struct clear_owners_map clear_owners SEC(".maps");
struct clear_streams_map clear_streams SEC(".maps");
struct clear_pushes_map clear_pushes SEC(".maps");
struct answer_looks_map clear_looks SEC(".maps");
struct transmits_map transmits SEC(".maps");
struct services_map services SEC(".maps");
struct services_free_map services_free SEC(".maps");
struct services_dropped_map services_dropped SEC(".maps");
struct target_cgroup_map target_cgroup SEC(".maps");
struct gauges_map gauges SEC(".maps");
struct opens_map opens SEC(".maps");
struct spans_map spans SEC(".maps");
struct port_places_map port_places SEC(".maps");
struct listeners_map listeners SEC(".maps");
struct owners_map owners SEC(".maps");
struct connects_map connects SEC(".maps");
struct fronts_map fronts SEC(".maps");
struct serving_map serving SEC(".maps");
struct calls_map calls SEC(".maps");
struct accepting_map accepting SEC(".maps");
struct ring_map ring SEC(".maps");

const volatile struct observer_config config = {};

__u64 conn_nothing[sizeof(struct conn) / sizeof(__u64)] = {};
__u64 clear_nothing[sizeof(struct clear_conn) / sizeof(__u64)] = {};
__u64 clear_streams_nothing[sizeof(struct clear_streams) / sizeof(__u64)] = {};
__u64 clear_push_nothing[sizeof(struct clear_push) / sizeof(__u64)] = {};
__u64 observed_ports[1024] = {};
__u32 services_given = 0, services_taken = 0;
__u64 services_dropped_count = 0, connections_dropped = 0;
__u32 listeners_idle = 0;
__u32 http2_next = 0;
__u32 command_rows_taken[COMMAND_PROTOCOL_COUNT] = {};
__u32 transmit_followed[TRANSMIT_PLACES] = {};
__u32 transmit_leaving = 0;
__u64 epoch = 0;
__u64 epoch_ns = 0;
__u64 threads_known[THREAD_PLACES / 64] = {};
__u32 threads_next = 0;
__u32 threads_watched = 0;
__u32 clear_go = 0;
__u64 sample_threshold = 0;
__u32 read_clock = 0, read_clock_port = 0;
__u64 read_clock_ns = 0;
__u32 sample_flushing = 0;
__u16 ports_low = 0, ports_high = 0;
__u64 ports_held[1024] = {};
__u64 ports_unplaced = 0;
__u32 listeners_next;
__u32 streams_wanted = 0, streams_attached = 0;

char LICENSE[] SEC("license") = "Dual MIT/GPL";
