// SPDX-License-Identifier: MIT
/* The verdict in one sentence: where most time went and the remedy, or why that is not known. */
#include <stdarg.h>
#include <string.h>

#include "parts.h"
#include "report/observed/means.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

/* Places where time is spent. */
enum cause {
	CAUSE_UNSENT,
	CAUSE_NETWORK,
	CAUSE_NETWORK_FOLLOWED,
	CAUSE_ACCEPT,
	CAUSE_ACCEPT_INFERRED,
	CAUSE_CROWDED,
	CAUSE_SOCKET,
	CAUSE_RECEIVE,
	CAUSE_SERVICE,
	CAUSE_RUNNING,
	CAUSE_RUNNABLE,
	CAUSE_BLOCKED,
	CAUSE_DIVIDED,
	CAUSE_RESPOND,
	CAUSE_TRANSMIT,
	CAUSE_COUNT
};

/* "69 % of … passed SPENT: [the server's name] HELP". */
static const struct {
	const char *part; /* in a table */
	const char *spent;
	bool names_server;
	const char *help;
} rules[CAUSE_COUNT] = {
	[CAUSE_UNSENT] = {"not yet sent", "before they were sent, all connections being busy",
			  false, "the server cannot follow this rate, or -c is too low"},
	[CAUSE_NETWORK] = {"network + client", "in the network and the client", true,
			   "is not what is slow; --transmit all shows what waited on its host"},
	[CAUSE_NETWORK_FOLLOWED] = {"network + client", "in the network and the client", true,
				    "is not what is slow"},
	[CAUSE_ACCEPT] = {"accept queue", "waiting for accept()", true,
			  "needs more workers, or clients that keep their connections"},
	[CAUSE_ACCEPT_INFERRED] = {"accept or socket queue",
				   "waiting for accept() or, accepted, unread in the socket", true,
				   "needs more workers, or fewer clients per worker"},
	[CAUSE_CROWDED] = {"accept queue, network + client",
			   "in the accept queue or, dropped by it, until TCP sent again", false,
			   NULL}, /* the remedy is advise_backlog()'s */
	[CAUSE_SOCKET] = {"socket queue", "unread in the socket", true,
			  "needs more workers, or fewer clients per worker"},
	[CAUSE_RECEIVE] = {"receive", "between the request's first and last read", false,
			   "the client or the network sends it slowly, or the server reads it "
			   "slowly (then Recv-Q of ss -tn is not 0)"},
	[CAUSE_SERVICE] = {"service", "in service", true,
			   "takes this long; --cpu shows whether it computes or waits"},
	[CAUSE_RUNNING] = {"service, on a CPU", "in service, on a CPU", true,
			   "computes for so long: a profiler shows what"},
	[CAUSE_RUNNABLE] = {"service, waiting for a CPU", "in service, waiting for a CPU", false,
			    "the host has too few CPUs for what runs on it, or a CPU quota holds "
			    "the server back (nr_throttled in cpu.stat)"},
	[CAUSE_BLOCKED] = {"service, blocked", "in service, blocked", true,
			   "waits for a disk, a lock or another server"},
	[CAUSE_DIVIDED] =
		{"service", "in service", true,
		 "takes this long: by turns it computes, waits for a CPU, and is blocked"},
	[CAUSE_RESPOND] = {"respond", "while the response was being written", false,
			   "it is long or streamed, or the client reads it slowly"},
	[CAUSE_TRANSMIT] = {"transmit queue", "waiting to leave the server's host", false,
			    "its network card, or a limit on it, is full, or the client or the "
			    "path takes no more"},
};

/* The time per cause, and the total. */
struct account {
	double spent_ns[CAUSE_COUNT];
	double total_ns;
	double share; /* of the requests that decide it */
};

/* From this share on a part is the answer. */
#define DOMINANT_SHARE 0.5
/* Shorter times need no remedy. */
#define SLOW_NS (1.0 * NSEC_PER_MSEC)
/* A mean is decided by as many. */
#define MEAN_SHARE 0.5

static const enum cause stage_causes[STAGE_RESIDENCE_END] = {
	[STAGE_ACCEPT_QUEUE] = CAUSE_ACCEPT, [STAGE_SOCKET_QUEUE] = CAUSE_SOCKET,
	[STAGE_RECEIVE] = CAUSE_RECEIVE,     [STAGE_SERVICE] = CAUSE_SERVICE,
	[STAGE_RESPOND] = CAUSE_RESPOND,
};

static enum cause cause_of(const struct run_stage *stages, enum stage stage)
{
	return stage == STAGE_ACCEPT_QUEUE && run_accept_is_inferred(stages) ? CAUSE_ACCEPT_INFERRED
									     : stage_causes[stage];
}

__attribute__((format(printf, 2, 3))) static bool unknown(struct report_verdict *verdict,
							  const char *format, ...)
{
	char why[sizeof(verdict->text) - 40];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	verdict->part = NULL;
	snprintf(verdict->text, sizeof(verdict->text), "not known where the time goes: %s", why);
	return true;
}

static enum cause largest(const struct account *account)
{
	enum cause cause = 0;

	for (enum cause i = 1; i < CAUSE_COUNT; i++)
		if (account->spent_ns[i] > account->spent_ns[cause])
			cause = i;
	return cause;
}

/* Unite the parts of service, and what is not divided of it, if no part dominates alone. */
static void unite_service(struct account *account)
{
	double *spent_ns = account->spent_ns, most_ns = 0, sum_ns = 0;
	enum cause cause;

	for (enum cause i = CAUSE_RUNNING; i <= CAUSE_BLOCKED; i++) {
		most_ns = spent_ns[i] > most_ns ? spent_ns[i] : most_ns;
		sum_ns += spent_ns[i];
	}
	if (most_ns >= DOMINANT_SHARE * account->total_ns)
		return;
	sum_ns += spent_ns[CAUSE_SERVICE];
	cause = spent_ns[CAUSE_SERVICE] * 2 > sum_ns ? CAUSE_SERVICE : CAUSE_DIVIDED;
	spent_ns[CAUSE_SERVICE] = 0;
	spent_ns[cause] = sum_ns;
	spent_ns[CAUSE_RUNNING] = spent_ns[CAUSE_RUNNABLE] = spent_ns[CAUSE_BLOCKED] = 0;
}

/* Parts of service that may be the wait for an upstream. */
static bool may_wait(enum cause cause)
{
	return cause == CAUSE_SERVICE || cause == CAUSE_BLOCKED || cause == CAUSE_DIVIDED;
}

/* Return whether as many responses as decide the verdict waited for an ACK that the server's TCP wanted. */
static bool is_held(const struct run_service *service, enum cause cause, double share)
{
	double held = (double)service->nagle_held;

	return held > 0 && held >= share * (double)service->exchanges &&
	       (cause == CAUSE_NETWORK || cause == CAUSE_TRANSMIT);
}

static bool is_network(enum cause cause)
{
	return cause == CAUSE_NETWORK || cause == CAUSE_NETWORK_FOLLOWED;
}

/* Late writes may be the ends of responses: then their time is not the network's. */
static bool is_late(const struct run_service *service, enum cause cause,
		    const struct account *account)
{
	return is_network(cause) &&
	       report_trails(service, account->share, account->spent_ns[cause]);
}

static bool unknown_late(const struct run_service *service, struct report_verdict *verdict)
{
	return unknown(
		verdict,
		"%s writes came after a pause of %s or more, and count for no response; if "
		"they are of responses, their time is not the network's (--quiet-time of the "
		"observer)",
		as_count(service->losses[RUN_LOSS_TRAILING]), as_time(report_quiet_ns(service)));
}

static void advise_nodelay(const struct run_service *service, char *ret_text, size_t size)
{
	char name[SHORT_TEXT];

	report_server_name(service, name);
	snprintf(ret_text, size,
		 "%s held back the end of %s of %s responses until the client's ACK (Nagle); it "
		 "has to set TCP_NODELAY",
		 name, as_count(service->nagle_held), as_count(service->exchanges));
}

/* The first wait of TCP until it sends again what a full accept queue has dropped. */
#define SENT_AGAIN_NS (1.0 * NSEC_PER_SEC)

/*
 * Return whether a full accept queue may explain the time. The client's TCP is established then, and sends the request
 * again and again until the server's TCP takes the connection. No hook sees this: the time is the network's.
 */
static bool is_crowded(const struct run_service *service, enum cause cause,
		       const struct account *account)
{
	const struct run_number *overflows = &service->accept_queue.overflows;

	return is_network(cause) && overflows->known && overflows->value &&
	       (double)overflows->value * SENT_AGAIN_NS >=
		       DOMINANT_SHARE * account->spent_ns[cause] * account->share *
			       (double)service->exchanges;
}

/*
 * Unite the waits in a full accept queue with those of connections that it dropped, if neither dominates alone. They
 * have one cause and one remedy.
 */
static void unite_crowded(const struct run_service *service, struct account *account)
{
	double *spent_ns = account->spent_ns;
	enum cause network = spent_ns[CAUSE_NETWORK] > 0 ? CAUSE_NETWORK : CAUSE_NETWORK_FOLLOWED;
	enum cause wait = spent_ns[CAUSE_ACCEPT] > 0 ? CAUSE_ACCEPT : CAUSE_ACCEPT_INFERRED;
	double sum_ns = spent_ns[network] + spent_ns[wait], half_ns;

	half_ns = DOMINANT_SHARE * account->total_ns;
	if (spent_ns[network] >= half_ns || spent_ns[wait] >= half_ns || sum_ns < half_ns ||
	    !is_crowded(service, network, account))
		return;
	spent_ns[network] = spent_ns[wait] = 0;
	spent_ns[CAUSE_CROWDED] = sum_ns;
}

static void advise_backlog(const struct run_service *service, char *ret_text, size_t size)
{
	char name[SHORT_TEXT];

	report_server_name(service, name);
	snprintf(ret_text, size,
		 "the accept queue was full (overflows: %s), and TCP sends again only after a "
		 "second or more; %s needs more workers, or a larger backlog",
		 as_count(service->accept_queue.overflows.value), name);
}

/* A range of times by the observer's clock. */
struct range {
	uint64_t first_ns;
	uint64_t last_ns;
};

static void range_add(struct range *range, uint64_t ns)
{
	range->first_ns = range->last_ns && range->first_ns < ns ? range->first_ns : ns;
	range->last_ns = range->last_ns > ns ? range->last_ns : ns;
}

static uint64_t range_length(const struct range *range)
{
	return range->last_ns - range->first_ns;
}

/* With fewer, a single pause of the host could decide the verdict. */
#define FEWEST_SLOW 10U
/* Requests read in a row that much quicker than they came, and in that part of their wait, waited for one event. */
#define PAUSE_QUICKER 3U
#define PAUSE_PART    10U

/*
 * Return whether the server read the slowest requests all at once, although they came one after the other: it was not
 * too busy, but paused. Write how long they took to be read and waited at most.
 */
static bool are_of_several_hosts(const struct run_joined *joined)
{
	for (size_t i = 1; i < joined->host_count; i++)
		if (!text_same(joined->hosts[i].name, joined->hosts[0].name))
			return true;
	return false;
}

static bool is_pause(const struct run_joined *joined, uint64_t *ret_read_ns, uint64_t *ret_wait_ns)
{
	struct range arrived = {0}, read = {0};
	uint64_t least_ns = UINT64_MAX, most_ns = 0;

	/* The clocks of several hosts differ. */
	if (!joined || joined->slowest_count < FEWEST_SLOW || are_of_several_hosts(joined))
		return false;
	for (size_t i = 0; i < FEWEST_SLOW; i++) {
		const struct run_exchange *exchange = &joined->slowest[i];
		const struct run_number *stages = exchange->parts.stages;
		uint64_t wait_ns =
			stages[STAGE_ACCEPT_QUEUE].value + stages[STAGE_SOCKET_QUEUE].value;

		if (!exchange->arrival_ns)
			return false;
		range_add(&arrived, exchange->arrival_ns);
		range_add(&read, exchange->arrival_ns + wait_ns);
		least_ns = wait_ns < least_ns ? wait_ns : least_ns;
		most_ns = wait_ns > most_ns ? wait_ns : most_ns;
	}
	*ret_read_ns = range_length(&read);
	*ret_wait_ns = most_ns;
	return range_length(&read) * PAUSE_QUICKER <= range_length(&arrived) &&
	       range_length(&read) * PAUSE_PART <= least_ns;
}

/* Write the remedy of requests that waited unread together; false: they did not. */
static bool advise_pause(const struct run *run, const struct run_service *service, enum cause cause,
			 char *ret_text, size_t size)
{
	char name[SHORT_TEXT];
	uint64_t read_ns, wait_ns;

	if ((cause != CAUSE_SOCKET && cause != CAUSE_ACCEPT && cause != CAUSE_ACCEPT_INFERRED) ||
	    !is_pause(run->joined, &read_ns, &wait_ns))
		return false;
	report_server_name(service, name);
	snprintf(ret_text, size,
		 "%s read the %u slowest within %s, after up to %s: it paused (garbage collection, "
		 "a blocked loop, no CPU)",
		 name, FEWEST_SLOW, as_time((double)read_ns), as_time((double)wait_ns));
	return true;
}

/* Write the server's name and the remedy, or the upstream that most of the service waits for. */
static void advise(const struct run *run, const struct run_service *service, enum cause cause,
		   struct report_verdict *verdict, char *ret_text, size_t size)
{
	struct report_upstream upstream;
	char name[SHORT_TEXT], called[sizeof(verdict->upstream)];
	const struct run_timed_call *call, *minor;
	double part;

	report_server_name(service, name);
	call = may_wait(cause) ? report_main_call(service, &part) : NULL;
	minor = may_wait(cause) && !call ? report_sole_call(service, &part) : NULL;
	if (call) {
		snprintf(verdict->upstream, sizeof(verdict->upstream), "%s", call->towards);
		snprintf(ret_text, size, "%s waits for %s, %s%s of its service", name,
			 call->towards, report_least_share(service, call), as_share(100 * part));
	} else if (minor)
		snprintf(ret_text, size, "%s %s; its calls to %s are %s of all its service", name,
			 rules[cause].help, minor->towards, as_share(100 * part));
	else if (may_wait(cause) && service->calls)
		snprintf(ret_text, size, "%s takes this long, or waits for %s (not observed%s)",
			 name, service->calls,
			 service->timed_call_count ? "" : "; --calls times it");
	else if (cause == CAUSE_SERVICE && service->cpu->measured)
		snprintf(ret_text, size, "%s takes this long; --cpu divides %s of %s requests",
			 name, as_count(service->cpu->histogram.count),
			 as_count(service->stages[STAGE_SERVICE].histogram.count));
	else
		snprintf(ret_text, size, "%s%s%s", rules[cause].names_server ? name : "",
			 rules[cause].names_server ? " " : "", rules[cause].help);
	if (!may_wait(cause) || !report_main_upstream(run, service, &upstream))
		return;
	snprintf(called, sizeof(called), "%s%s (port %u)", upstream.name, upstream.on,
		 upstream.service->port);
	if (*upstream.unknown) {
		snprintf(ret_text, size, "%s takes this long, or waits for %s%s%s", name, called,
			 service->calls ? " or others, such as " : "",
			 service->calls ? service->calls : "");
		return;
	}
	memcpy(verdict->upstream, called, sizeof(called));
	snprintf(ret_text, size, "%s waits for %s, %s%s of its service", name, verdict->upstream,
		 upstream.at_most ? "at most " : "",
		 as_share(upstream.share > 1 ? 100 : 100 * upstream.share));
}

/* @of: "the slow requests' time (p99: 7.30 ms)". */
static bool conclude(const struct run *run, struct account *account,
		     const struct run_service *service, const char *of,
		     struct report_verdict *verdict)
{
	const char *share;
	char advice[448];
	enum cause cause;
	double percent;

	unite_service(account);
	unite_crowded(service, account);
	cause = largest(account);
	if (is_late(service, cause, account))
		return unknown_late(service, verdict);
	percent = account->total_ns > 0 ? 100 * account->spent_ns[cause] / account->total_ns : 0;
	if (is_held(service, cause, account->share))
		advise_nodelay(service, advice, sizeof(advice));
	else if (cause == CAUSE_CROWDED || is_crowded(service, cause, account))
		advise_backlog(service, advice, sizeof(advice));
	else if (!advise_pause(run, service, cause, advice, sizeof(advice)))
		advise(run, service, cause, verdict, advice, sizeof(advice));
	share = as_share(percent > 100 ? 100 : percent);
	verdict->part = rules[cause].part;
	verdict->percent = percent > 100 ? 100 : percent;
	verdict->total_ns = account->total_ns;
	if (percent < 100 * DOMINANT_SHARE)
		snprintf(verdict->text, sizeof(verdict->text),
			 "no part holds half of %s: most, %s, passed %s", of, share,
			 rules[cause].spent);
	else if (account->total_ns < SLOW_NS)
		snprintf(verdict->text, sizeof(verdict->text), "%s of %s passed %s", share, of,
			 rules[cause].spent);
	else
		snprintf(verdict->text, sizeof(verdict->text), "%s of %s passed %s: %s", share, of,
			 rules[cause].spent, advice);
	return true;
}

/* ---- service, by what its thread did ---- */

/* The rest, which was not divided, remains in service. */
static void move_part(struct account *account, enum cause part, double ns)
{
	double *service_ns = &account->spent_ns[CAUSE_SERVICE];

	account->spent_ns[part] = ns < *service_ns ? ns : *service_ns;
	*service_ns -= account->spent_ns[part];
}

/* Of the sums over @count joined exchanges; unknown if it is so of one of them. */
static void divide_joined(const struct run_parts *sum, double count, struct account *account)
{
	if (!sum->running_ns.known)
		return;
	move_part(account, CAUSE_RUNNING, (double)sum->running_ns.value / count);
	move_part(account, CAUSE_RUNNABLE, (double)sum->runnable_ns.value / count);
	move_part(account, CAUSE_BLOCKED, (double)sum->blocked_ns.value / count);
}

/* Of the service's means: exchanges that were not divided count with no part. */
static void divide_mean(const struct run_service *service, struct account *account)
{
	double timed = (double)service->stages[STAGE_SERVICE].histogram.count;

	for (unsigned int i = 0; i < RUN_CPU_COUNT && timed > 0; i++)
		if (service->cpu[i].measured)
			move_part(account, CAUSE_RUNNING + i,
				  (double)service->cpu[i].histogram.sum / timed);
}

_Static_assert(CAUSE_BLOCKED - CAUSE_RUNNING == RUN_CPU_BLOCKED - RUN_CPU_RUNNING &&
		       CAUSE_RUNNABLE - CAUSE_RUNNING == RUN_CPU_RUNNABLE - RUN_CPU_RUNNING,
	       "the causes of a divided service stand in enum run_cpu's order");

/* ---- of joined exchanges ---- */

static void account_tail(const struct run_joined *joined, const struct run_tail *tail,
			 struct account *account)
{
	const struct run_parts *sum = &tail->sum;
	bool followed = sum->stages[STAGE_TRANSMIT_QUEUE].known;
	double count = (double)tail->count;

	account->spent_ns[CAUSE_UNSENT] = (double)sum->wait_ns;
	account->spent_ns[followed ? CAUSE_NETWORK_FOLLOWED : CAUSE_NETWORK] =
		(double)sum->network_ns;
	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++)
		account->spent_ns[cause_of(joined->stages, i)] = (double)sum->stages[i].value;
	account->spent_ns[CAUSE_TRANSMIT] = (double)sum->stages[STAGE_TRANSMIT_QUEUE].value;
	for (enum cause i = 0; i < CAUSE_COUNT; i++)
		account->spent_ns[i] /= count;
	divide_joined(sum, count, account);
	account->total_ns = (double)run_parts_total(sum) / count;
}

/* Return the highest percentile up to p99 with enough joined exchanges above; NULL: none. */
static const struct run_tail *tail_of(const struct run_joined *joined)
{
	const struct run_tail *tail = NULL;

	for (size_t i = 0; joined && i < joined->tail_count && joined->tail[i].per_mille <= 990;
	     i++)
		if (joined->tail[i].count >= FEWEST_SLOW)
			tail = &joined->tail[i];
	return tail;
}

static bool judge_tail(const struct run *run, const struct run_service *service,
		       const struct run_tail *tail, struct report_verdict *verdict)
{
	char of[96];
	struct account account = {.share = 1 - tail->per_mille / 1000.0};

	account_tail(run->joined, tail, &account);
	snprintf(of, sizeof(of), "the slow requests' time (beyond %s, %s)",
		 report_percentile_name(tail->per_mille, UNITS_ROOM),
		 as_time((double)tail->above_ns));
	return conclude(run, &account, service, of, verdict);
}

/*
 * Return whether the server held half of the slow requests' time although the driver's loop was late. A late loop
 * lengthens only what comes before and after the server.
 */
static bool outlasts_lateness(const struct run *run, const struct run_tail *tail)
{
	const struct run_number *stages = tail->sum.stages;
	uint64_t server_ns = stages[STAGE_ACCEPT_QUEUE].value + stages[STAGE_SOCKET_QUEUE].value +
			     stages[STAGE_SERVICE].value;

	return text_same(run->driver->limited->by, "schedule") &&
	       (double)server_ns >= DOMINANT_SHARE * (double)run_parts_total(&tail->sum);
}

/* ---- of means ---- */

/* Return a stage that was not measured: its time is included in the network's. */
static const char *hidden_stage(const struct run_service *service, const struct report_means *means)
{
	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++)
		if (means->stages[i].missing && report_has_stage(service, i))
			return means->stages[i].name;
	return NULL;
}

static void account_means(const struct run_service *service, const struct report_means *means,
			  struct account *account)
{
	const struct report_mean *transmit = &means->stages[STAGE_TRANSMIT_QUEUE];

	account->total_ns = means->round_trip_ns;
	account->spent_ns[transmit->missing ? CAUSE_NETWORK : CAUSE_NETWORK_FOLLOWED] =
		means->network_ns;
	for (unsigned int i = 0; i < STAGE_RESIDENCE_END; i++)
		account->spent_ns[cause_of(service->stages, i)] = means->stages[i].mean_ns;
	account->spent_ns[CAUSE_TRANSMIT] = transmit->mean_ns;
}

/* Return the mean time from when a request was due until it was sent, at a rate. */
static double unsent_mean(const struct run *run, const struct report_means *means)
{
	double unsent_ns;

	if (!run->driver->rate || !run->driver->response_time.count)
		return 0;
	if (means->of_joined)
		return (double)run->joined->sum.wait_ns / (double)means->of_joined;
	unsent_ns = histogram_mean(&run->driver->response_time) - means->round_trip_ns;
	return unsent_ns > 0 ? unsent_ns : 0;
}

static bool judge_means(const struct run *run, const struct run_service *service,
			struct report_verdict *verdict)
{
	char of[96];
	struct account account = {.share = MEAN_SHARE};
	struct report_means means;
	const char *hidden;

	report_means(run, service, &means);
	if (means.network_unknown)
		return unknown(verdict, "%s", means.network_unknown);
	account_means(service, &means, &account);
	account.spent_ns[CAUSE_UNSENT] = unsent_mean(run, &means);
	account.total_ns += account.spent_ns[CAUSE_UNSENT];
	hidden = hidden_stage(service, &means);
	if (hidden && is_network(largest(&account)))
		return unknown(verdict,
			       "most of the time is left for network, client and %s, which was not "
			       "measured",
			       as_words(hidden));
	if (means.of_joined)
		divide_joined(&run->joined->sum, (double)means.of_joined, &account);
	else
		divide_mean(service, &account);
	snprintf(of, sizeof(of), "the mean %s (%s)",
		 run->driver->rate ? "response time" : "round trip", as_time(account.total_ns));
	return conclude(run, &account, service, of, verdict);
}

/* ---- of new connections ---- */

/* Return the mean time from when a request could go on a new connection to its response. */
static double with_connecting(const struct run_driver *driver)
{
	return driver->rate ? histogram_mean(&driver->response_time)
			    : histogram_mean(&driver->connect) + histogram_mean(&driver->tls) +
				      histogram_mean(&driver->round_trip);
}

static void say_opening(const char *part, double spent_ns, double total_ns, const char *advice,
			struct report_verdict *verdict)
{
	verdict->part = part;
	verdict->percent = spent_ns < total_ns ? 100 * spent_ns / total_ns : 100;
	verdict->total_ns = total_ns;
	snprintf(verdict->text, sizeof(verdict->text),
		 "%s of the mean time with connecting (%s) passed in %s: %s",
		 as_share(verdict->percent), as_time(total_ns), part, advice);
}

/* Judge the opening of the connections, if each request has one of its own and most time went there. */
static bool judge_opening(const struct run_driver *driver, const struct run_service *service,
			  struct report_verdict *verdict)
{
	double tls_ns = histogram_mean(&driver->tls), connect_ns = histogram_mean(&driver->connect);
	double total_ns = with_connecting(driver);
	char name[SHORT_TEXT], advice[SHORT_TEXT + 160];

	if (!driver->new_connections || total_ns < SLOW_NS)
		return false;
	report_server_name(service, name);
	if (tls_ns >= DOMINANT_SHARE * total_ns) {
		snprintf(advice, sizeof(advice),
			 "clients should keep their connections, or resume sessions; else %s needs "
			 "more CPU for handshakes",
			 name);
		say_opening("TLS handshakes", tls_ns, total_ns, advice, verdict);
	} else if (connect_ns >= DOMINANT_SHARE * total_ns) {
		if (service->accept_queue.overflows.value)
			advise_backlog(service, advice, sizeof(advice));
		else
			snprintf(advice, sizeof(advice),
				 "the path is long, or packets are lost on it; clients should keep "
				 "their connections");
		say_opening("TCP handshakes", connect_ns, total_ns, advice, verdict);
	}
	return verdict->part != NULL;
}

static bool is_multiplexed(const struct run_service *service)
{
	uint64_t unknown = service->losses[RUN_LOSS_MULTIPLEXED];

	if (service->http2.older.value && !service->exchanges)
		return true;
	return unknown * 2 >= service->accepted && unknown > service->http2.connections.value;
}

static const char multiplexed[] =
	"the service speaks HTTP/2, whose requests overlap on a connection: they are not timed%s";

/* No service has timed exchanges that may be the driver's: say why. False: nobody observed. */
static bool judge_none(const struct run *run, struct report_verdict *verdict)
{
	uint16_t port = report_target_port(run->driver);
	bool watched = false;

	if (!run->service_count || !run->driver->requests)
		return false;
	if (report_is_split(run))
		return unknown(verdict, "the requests went to several services");
	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].port == port && is_multiplexed(&run->services[i]))
			return unknown(verdict, multiplexed, report_unfollowed(&run->services[i]));
	for (size_t i = 0; i < run->service_count; i++)
		watched |= run->services[i].port == port;
	if (port && !watched)
		return unknown(
			verdict,
			"the driver asked port %u, and the observer watched others, such as %u",
			port, run->services[0].port);
	return unknown(verdict, "the observer saw no exchange of the driver's");
}

bool report_verdict(const struct run *run, const struct run_service *service,
		    struct report_verdict *ret_verdict)
{
	const struct run_tail *tail = tail_of(run->joined);
	char why[REPORT_UNDIVIDED_TEXT];

	if (!service)
		return judge_none(run, ret_verdict);
	if (run->driver->limited && !(tail && outlasts_lateness(run, tail)))
		return unknown(ret_verdict, "the driver itself was the limit, not the server");
	ret_verdict->part = NULL;
	if (judge_opening(run->driver, service, ret_verdict))
		return true;
	if (report_undivided(run, service, why))
		return unknown(ret_verdict, "observer and driver did not time the same requests");
	return tail ? judge_tail(run, service, tail, ret_verdict)
		    : judge_means(run, service, ret_verdict);
}

/* ---- without a driver ---- */

static void account_residence(const struct run_service *service, struct account *account)
{
	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++) {
		double mean_ns = run_stage_mean(service, i);

		account->spent_ns[cause_of(service->stages, i)] = mean_ns;
		account->total_ns += mean_ns;
	}
	divide_mean(service, account);
}

bool report_service_verdict(const struct run *run, const struct run_service *service,
			    struct report_verdict *ret_verdict)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;
	uint64_t messages = service->websocket.messages_in + service->websocket.messages_out;
	char of[96];
	struct account account = {.share = MEAN_SHARE};

	if (is_multiplexed(service))
		return unknown(ret_verdict, multiplexed, report_unfollowed(service));
	if (!service->exchanges)
		return false;
	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++)
		if (!service->stages[i].measured && i != STAGE_ACCEPT_QUEUE &&
		    report_has_stage(service, i))
			return unknown(ret_verdict, "%s was not measured: %s",
				       as_words(run_stage_label(service->stages, i)),
				       report_missing(&service->stages[i], i));
	/* The requests that began such connections are few. They say nothing of what the server does since. */
	if (messages > service->exchanges)
		return unknown(
			ret_verdict,
			"it talks by WebSocket, none of whose messages says which one it answers");
	if (timed * 2 < service->exchanges)
		return unknown(ret_verdict, "only %s of %s exchanges could be timed",
			       as_count(timed), as_count(service->exchanges));
	account_residence(service, &account);
	snprintf(of, sizeof(of), "the mean time at the server (%s)", as_time(account.total_ns));
	return conclude(run, &account, service, of, ret_verdict);
}

void report_print_verdict(const struct page *page, const struct report_verdict *verdict)
{
	page_style(page, STYLE_BOLD);
	page_wrap(page, 0, "%s", verdict->text);
	page_style(page, STYLE_PLAIN);
}
