// SPDX-License-Identifier: MIT
/* Rehearses the candidate programs on the running kernel; see plan.h. Neighbours: candidates.c, loader.c. */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "btf.h"
#include "loader.h"
#include "kernel/tls/clear.h"
#include "sojourn/cleanup.h"
#include "sojourn/remedy.h"
#include "sojourn/text.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/*
 * The number of parameters that a program expects of functions and tracepoints that have changed.
 */
static const struct {
	const char *program;
	const char *function;
	int parameters;
} signatures[] = {
	{"exchange_recvmsg", "tcp_recvmsg", 5},
	{"exchange_recvmsg_nonblock", "tcp_recvmsg", 6},
	{"exchange_recvmsg_plain", "tcp_recvmsg", 4},
	{"accept_arg", "inet_csk_accept", 2},
	{"accept_flags", "inet_csk_accept", 4},
	{"accept_uring", "io_uring_complete", 3},
	{"accept_uring_result", "io_uring_complete", 7},
	{"accept_uring_plain", "io_uring_complete", 4},
};

/* Every stage is recorded when the response begins, so each needs all three request programs. */
#define NEEDS_EXCHANGE                                                               \
	(1U << QUESTION_CONNECTIONS | 1U << QUESTION_ARRIVAL | 1U << QUESTION_READ | \
	 1U << QUESTION_WRITE)

#define NEEDS_TRANSMIT (NEEDS_EXCHANGE | 1U << QUESTION_TRANSMIT)

#define NEEDS_UDP (1U << QUESTION_UDP_ARRIVAL | 1U << QUESTION_UDP_READ | 1U << QUESTION_UDP_WRITE)

static const unsigned int stage_needs[STAGE_COUNT] = {
	[STAGE_ACCEPT_QUEUE] = NEEDS_EXCHANGE, [STAGE_SOCKET_QUEUE] = NEEDS_EXCHANGE,
	[STAGE_RECEIVE] = NEEDS_EXCHANGE,      [STAGE_SERVICE] = NEEDS_EXCHANGE,
	[STAGE_RESPOND] = NEEDS_EXCHANGE,      [STAGE_TRANSMIT_QUEUE] = NEEDS_TRANSMIT,
	[STAGE_ACK] = NEEDS_TRANSMIT,
};

const char *plan_program(const struct plan_row *row, size_t i)
{
	if (!i)
		return row->candidate->program;
	return i < PLAN_ROW_PROGRAMS ? row->candidate->also[i - 1] : NULL;
}

static bool named(const struct candidate *candidate, const char *name)
{
	return !strcmp(candidate->program, name) || !strcmp(candidate->hook, name);
}

bool plan_knows(const char *name)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		if (named(&plan_candidates[i], name))
			return true;
	}
	return false;
}

static bool is_name_for(const char *name, enum question question)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		if (plan_candidates[i].question == question && named(&plan_candidates[i], name))
			return true;
	}
	return false;
}

/* Return whether another candidate of its question is preferred. */
static bool passed_over(const struct candidate *candidate, const struct plan_wish *wish)
{
	bool other = false;

	for (size_t i = 0; i < wish->prefer_count; i++) {
		if (named(candidate, wish->prefer[i]))
			return false;
		other |= is_name_for(wish->prefer[i], candidate->question);
	}
	return other;
}

static bool usable(const struct candidate *candidate, const struct plan_wish *wish)
{
	if (passed_over(candidate, wish))
		return false;
	switch (candidate->use) {
	case USE_ALWAYS:
		return true;
	case USE_ACCEPT_RETURNED:
		return wish->accept_source == ACCEPT_AUTO || wish->accept_source == ACCEPT_RETURNED;
	case USE_ACCEPT_SYSCALL:
		return wish->accept_source == ACCEPT_SYSCALL;
	case USE_TRANSMIT:
	case USE_TRANSMIT_STAMPS:
		return wish->transmit;
	case USE_CPU:
		return wish->cpu;
	case USE_CALLS:
		return wish->calls;
	case USE_INSIDE:
		return wish->http || wish->commands;
	case USE_HTTP:
		return wish->http || (wish->streams && wish->commands);
	case USE_BESIDE:
		return false;
	case USE_COMMANDS:
		return wish->commands || wish->http;
	case USE_TLS:
		return wish->tls;
	case USE_UDP:
		return wish->udp;
	}
	return false;
}

/* Return whether the candidate is one of those for streams, which come beside the plain ones. */
static bool is_for_beside(const struct candidate *candidate, const struct plan_wish *wish)
{
	return wish->streams && !wish->http && !wish->commands &&
	       (candidate->use == USE_BESIDE || candidate->use == USE_HTTP) &&
	       !passed_over(candidate, wish);
}

static uint64_t effective_capabilities(void)
{
	autofclose FILE *file = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	}
	return caps;
}

/* Return whether BPF is refused as such: with CAP_BPF every kernel accepts this program. */
static bool bpf_is_refused(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", program,
			       ARRAY_SIZE(program), NULL);

	if (fd >= 0)
		close(fd);
	return fd == -EPERM;
}

/*
 * Explain why this process cannot load BPF programs here ("missing CAP_BPF", "no BTF"); empty if
 * there is no obvious reason.
 */
static void explain_access(char *reason, size_t size)
{
	uint64_t caps = effective_capabilities();
	bool all = caps & 1ULL << CAP_SYS_ADMIN;
	bool bpf = all || caps & 1ULL << CAP_BPF;
	bool perfmon = all || caps & 1ULL << CAP_PERFMON;

	reason[0] = 0;
	if (!bpf || !perfmon)
		snprintf(reason, size,
			 "missing %s%s%s: run it as root, or give it these capabilities",
			 bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
			 perfmon ? "" : "CAP_PERFMON");
	else if (bpf_is_refused())
		snprintf(reason, size,
			 "bpf() is refused in spite of CAP_BPF: by a container's seccomp profile "
			 "(seccomp=unconfined sets none), or in a user namespace");
	else if (access(KERNEL_BTF, R_OK) != 0)
		snprintf(reason, size,
			 "no " KERNEL_BTF
			 ": the kernel was built without CONFIG_DEBUG_INFO_BTF, or "
			 "/sys is hidden");
}

/* Fill in the row's reason. A reason against all of BPF is more informative than that of a single program. */
static void explain(struct plan_row *row, int error)
{
	char general[sizeof(row->reason)];

	explain_access(general, sizeof(general));
	if (general[0])
		snprintf(row->reason, sizeof(row->reason), "%s", general);
	else if (!row->reason[0])
		snprintf(row->reason, sizeof(row->reason), "%s", strerror(-error));
}

/*
 * Check that the function has the parameters that the program reads. Return 0 or -EINVAL. The verifier would not
 * notice: if one is missing, another number stands in the place of the result.
 */
static int check_parameters(struct plan_row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(signatures); i++) {
		int found;

		if (strcmp(row->candidate->program, signatures[i].program))
			continue;
		found = kernel_btf_parameters(signatures[i].function);
		if (found < 0 || found == signatures[i].parameters)
			return 0;
		snprintf(row->reason, sizeof(row->reason), "%s() has %d parameters here, not %d",
			 signatures[i].function, found, signatures[i].parameters);
		return -EINVAL;
	}
	return 0;
}

/* Check the row by the kernel's BTF alone, without loading a program. Return 0, or -errno with the row's reason. */
static int check_kernel(struct plan_row *row)
{
	int r = kernel_btf_hook(row->candidate->hook, row->reason, sizeof(row->reason));

	if (row->candidate->question == QUESTION_TLS && clear_denied()) {
		snprintf(row->reason, sizeof(row->reason), "%s", clear_denied());
		return -EOPNOTSUPP;
	}
	return r == -ENOENT ? r : check_parameters(row);
}

/* List the programs of @rows as trials. ret_owners[i] is the row of trial i. Return the number of trials. */
static size_t trials_of(struct plan_row **rows, size_t count, struct loader_trial *ret_trials,
			struct plan_row **ret_owners)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; plan_program(rows[i], k); k++) {
			ret_trials[n].program = plan_program(rows[i], k);
			ret_owners[n++] = rows[i];
		}
	}
	return n;
}

/*
 * Load and attach the programs of @rows together. Return 0, or -errno if one is refused. Then *ret_refused is its row
 * (NULL: not known), and @reason says why.
 */
static int try_together(struct plan_row **rows, size_t count,
			const struct loader_rehearsal *rehearsal, struct plan_row **ret_refused,
			char *reason, size_t size)
{
	struct loader_trial trials[PLAN_ROW_PROGRAMS * PLAN_ROWS] = {};
	struct plan_row *owners[PLAN_ROW_PROGRAMS * PLAN_ROWS];
	size_t n = trials_of(rows, count, trials, owners), refused = n;
	int r = loader_rehearse(trials, n, rehearsal, &refused, reason, size);

	*ret_refused = count == 1 ? rows[0] : NULL;
	if (r < 0 && refused < n)
		*ret_refused = owners[refused];
	for (size_t i = 0; !r && i < n; i++)
		owners[i]->verified += trials[i].verified;
	return r;
}

static size_t take_out(struct plan_row **rows, size_t count, const struct plan_row *row)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (rows[i] != row)
			rows[kept++] = rows[i];
	}
	return kept;
}

/*
 * Each attempt reads the kernel's whole BTF, so all programs are tried at once. After a refusal they are tried again
 * without the refused one. If it is not known which one was refused, they are tried in halves. -errno: there were too
 * few descriptors to ask the kernel.
 */
static int rehearse(struct plan_row **rows, size_t count, const struct loader_rehearsal *rehearsal)
{
	while (count) {
		char reason[sizeof(rows[0]->reason)];
		struct plan_row *refused;
		int r = try_together(rows, count, rehearsal, &refused, reason, sizeof(reason));

		if (!r || r == -EMFILE || r == -ENFILE)
			return r;
		if (refused) {
			snprintf(refused->reason, sizeof(refused->reason), "%s", reason);
			explain(refused, r);
			count = take_out(rows, count, refused);
			continue;
		}
		r = rehearse(rows, count / 2, rehearsal);
		if (r < 0)
			return r;
		rows += count / 2;
		count -= count / 2;
	}
	return 0;
}

/* Return whether @question has a chosen candidate, or one that is about to be tried. */
static bool has_candidate(const struct plan *plan, enum question question, struct plan_row **next,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (next[i]->candidate->question == question && !next[i]->beside)
			return true;
	}
	return plan_chosen(plan, question);
}

/* Return whether the row's program is one of fexit, and the kernel refuses those as such. Then the row has the reason. */
static bool is_refused_fexit(struct plan_row *row)
{
	int r = text_begins(row->candidate->hook, "fexit/") ? kernel_btf_fexit() : 0;

	if (!r)
		return false;
	snprintf(row->reason, sizeof(row->reason), "fexit programs are refused: %s", strerror(-r));
	explain(row, r);
	return true;
}

/* Collect the rows to try next. Return their number. */
static size_t next_rows(struct plan *plan, const struct plan_wish *wish, struct plan_row **ret_next)
{
	size_t count = 0;

	for (size_t i = 0; i < PLAN_ROWS; i++) {
		struct plan_row *row = &plan->rows[i];

		if (row->rehearsed)
			continue;
		row->beside = is_for_beside(row->candidate, wish);
		if (!wish->everything && !row->beside &&
		    (!usable(row->candidate, wish) ||
		     has_candidate(plan, row->candidate->question, ret_next, count)))
			continue;
		row->rehearsed = true;
		if (check_kernel(row))
			continue;
		if (is_refused_fexit(row))
			continue;
		/* TX timestamps need a cgroup, and kernel functions that many kernels lack. */
		if (wish->hopeful && row->candidate->use != USE_TRANSMIT_STAMPS)
			row->chosen = !row->beside;
		else
			ret_next[count++] = row;
	}
	return count;
}

static void choose(struct plan *plan, const struct plan_wish *wish)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		struct plan_row *row = &plan->rows[i];

		if (row->candidate->use == USE_TRANSMIT_STAMPS && wish->cgroup_reason &&
		    row->rehearsed && !row->reason[0])
			snprintf(row->reason, sizeof(row->reason), "%s", wish->cgroup_reason);
		row->chosen |= row->rehearsed && !row->reason[0] && usable(row->candidate, wish) &&
			       !plan_chosen(plan, row->candidate->question);
	}
}

/*
 * Maximum of files that a rehearsal has open. libbpf reports a lack of descriptors differently for each of its kernel
 * calls. Most of these reports look like those of a kernel that refuses.
 */
#define REHEARSAL_FILES 64U

/* Return 0 if REHEARSAL_FILES can be opened, otherwise -EMFILE or -ENFILE. */
static int check_room(void)
{
	int fds[REHEARSAL_FILES], r = 0;
	unsigned int count = 0;

	while (!r && count < REHEARSAL_FILES) {
		fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fds[count] < 0 && (errno == EMFILE || errno == ENFILE))
			r = -errno;
		else
			count++;
	}
	while (count)
		cleanup_close(&fds[--count]);
	return r;
}

int plan_build(const struct plan_wish *wish, struct plan *ret_plan)
{
	const struct loader_rehearsal rehearsal = {
		.cgroup_fd = wish->cgroup_fd,
		.shared = wish->shared,
		.beside = wish->streams && !wish->http && !wish->commands,
	};
	struct plan_row *next[PLAN_ROWS];
	int r = check_room();
	size_t count;

	*ret_plan = (struct plan){
		.transmit = wish->transmit || wish->everything,
		.cpu = wish->cpu || wish->everything,
		.calls = wish->calls || wish->everything,
		.http = wish->http || wish->everything,
		.streams = wish->streams,
		.tls = wish->tls || wish->everything,
		.commands = wish->commands || wish->everything,
	};
	for (size_t i = 0; i < PLAN_ROWS; i++)
		ret_plan->rows[i].candidate = &plan_candidates[i];
	while (!r && (count = next_rows(ret_plan, wish, next))) {
		r = rehearse(next, count, &rehearsal);
		choose(ret_plan, wish);
	}
	kernel_btf_release();
	return r;
}

const struct plan_row *plan_chosen(const struct plan *plan, enum question question)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (row->chosen && row->candidate->question == question)
			return row;
	}
	return NULL;
}

enum accept_source plan_accept_source(const struct plan *plan)
{
	const struct plan_row *row = plan_chosen(plan, QUESTION_ACCEPT);

	if (!row)
		return ACCEPT_INFERRED;
	return row->candidate->use == USE_ACCEPT_SYSCALL ? ACCEPT_SYSCALL : ACCEPT_RETURNED;
}

bool plan_transmit_stamps(const struct plan *plan)
{
	const struct plan_row *row = plan_chosen(plan, QUESTION_TRANSMIT);

	return row && row->candidate->use == USE_TRANSMIT_STAMPS;
}

enum plan_depth plan_depth(const struct plan *plan)
{
	const struct plan_row *arrival = plan_chosen(plan, QUESTION_ARRIVAL);

	if (arrival && (!strcmp(arrival->candidate->program, ARRIVAL_READY) ||
			!strcmp(arrival->candidate->program, ARRIVAL_HTTP)))
		return PLAN_DEPTH_QUEUED;
	return plan_accept_source(plan) == ACCEPT_RETURNED ? PLAN_DEPTH_ACCEPTED
							   : PLAN_DEPTH_UNSEEN;
}

const char *plan_not_used(const struct plan *plan, const char *name)
{
	const char *reason = "not tried: the other options do not ask for it";

	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (!named(row->candidate, name))
			continue;
		if (plan_chosen(plan, row->candidate->question))
			return NULL;
		if (row->reason[0])
			reason = row->reason;
	}
	return reason;
}

const char *plan_refusal(const struct plan *plan, enum question question)
{
	if (plan_chosen(plan, question))
		return NULL;
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (row->candidate && row->candidate->question == question && row->reason[0])
			return row->reason;
	}
	return "no program for it";
}

/* Return whether a candidate works, chosen or not: `sojourn probe` tries optional ones without choosing them. */
static bool answerable(const struct plan *plan, enum question question)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (row->candidate->question == question && row->rehearsed && !row->reason[0])
			return true;
	}
	return false;
}

static const char *missing(const struct plan *plan, unsigned int needs)
{
	for (enum question q = 0; q < QUESTION_COUNT; q++) {
		if ((needs & 1U << q) && !answerable(plan, q))
			return plan_refusal(plan, q);
	}
	return NULL;
}

const char *plan_missing(const struct plan *plan, enum stage stage)
{
	if (stage >= STAGE_RESIDENCE_END && !plan->transmit)
		return "not asked for: --transmit";
	return missing(plan, stage_needs[stage]);
}

const char *plan_missing_udp(const struct plan *plan, enum stage stage)
{
	if (stage != STAGE_SOCKET_QUEUE && stage != STAGE_SERVICE)
		return "a datagram has no such stage";
	return missing(plan, NEEDS_UDP);
}

const char *plan_missing_cpu(const struct plan *plan, bool udp)
{
	if (!plan->cpu)
		return "not asked for: --cpu";
	return udp ? "not for datagrams" : missing(plan, NEEDS_EXCHANGE | 1U << QUESTION_CPU);
}

const char *plan_missing_calls(const struct plan *plan)
{
	if (!plan->calls)
		return "not asked for: --calls";
	return missing(plan, 1U << QUESTION_CONNECTIONS | 1U << QUESTION_CALLS);
}

/* Return why the program called @name does not work; NULL: it does. */
static const char *refused(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (!strcmp(row->candidate->program, name) && row->rehearsed)
			return row->reason[0] ? row->reason : NULL;
	}
	return "another hook is preferred";
}

/* Return why connections cannot be looked into, and their end be seen by @question. */
static const char *missing_inside(const struct plan *plan, enum question question)
{
	static const char *const programs[] = {ARRIVAL_HTTP, READ_HTTP, WRITE_HTTP};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const char *reason = refused(plan, programs[i]);

		if (reason)
			return reason;
	}
	return missing(plan, NEEDS_EXCHANGE | 1U << question);
}

const char *plan_missing_http(const struct plan *plan)
{
	return plan->http ? missing_inside(plan, QUESTION_HTTP) : RUN_REASON_HTTP;
}

/* Return whether the chosen programs are those that others can come beside. */
static bool is_plain(const struct plan *plan)
{
	static const struct {
		enum question question;
		const char *program;
	} plain[] = {
		{QUESTION_ARRIVAL, ARRIVAL_READY},
		{QUESTION_READ, READ_PLAIN},
		{QUESTION_WRITE, WRITE_PLAIN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		const struct plan_row *row = plan_chosen(plan, plain[i].question);

		if (!row || strcmp(row->candidate->program, plain[i].program))
			return false;
	}
	return true;
}

const char *plan_missing_streams(const struct plan *plan)
{
	const unsigned int beside = 1U << QUESTION_STREAMS | 1U << QUESTION_HTTP;
	const char *reason;

	if (plan->http)
		return plan_missing_http(plan);
	if (!plan->streams)
		return RUN_REASON_NO_HTTP2;
	if (plan->commands)
		return missing_inside(plan, QUESTION_HTTP);
	reason = missing(plan, NEEDS_EXCHANGE | beside);
	return reason || is_plain(plan) ? reason : "another hook is preferred";
}

bool plan_beside(const struct plan *plan)
{
	return !plan->http && !plan->commands && !plan_missing_streams(plan);
}

const char *plan_missing_commands(const struct plan *plan)
{
	return plan->commands ? missing_inside(plan, QUESTION_COMMANDS)
			      : "not asked for: --protocol";
}

const char *plan_missing_tls(const struct plan *plan)
{
	if (!plan->tls)
		return "not asked for: --tls";
	if (plan_missing_http(plan))
		return plan_missing_http(plan);
	return missing(plan,
		       1U << QUESTION_TLS | 1U << QUESTION_TLS_SOCKET | 1U << QUESTION_TLS_SENT);
}

size_t plan_working(const struct plan *plan)
{
	size_t working = 0;

	for (size_t i = 0; i < PLAN_ROWS; i++)
		working += plan->rows[i].chosen && (plan->rows[i].candidate->use == USE_ALWAYS ||
						    plan->rows[i].candidate->use == USE_INSIDE);
	return working;
}
