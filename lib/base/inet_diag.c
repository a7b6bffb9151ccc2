// SPDX-License-Identifier: MIT
/* Asks the kernel for sockets; see sojourn/inet_diag.h. */
#include "sojourn/inet_diag.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

/*
 * Use the request from before 3.3 (inet_diag_dump_compat()). It alone gets both families in one
 * walk over the kernel's hash, which takes 10 ms with 100,000 sockets.
 */
static int send_question(const struct inet_diag_question *question, int fd)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req request;
		struct nlattr filter;
	} head = {
		.header = {.nlmsg_type = TCPDIAG_GETSOCK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.idiag_states = question->states, .idiag_ext = question->extensions},
		.filter = {.nla_type = INET_DIAG_REQ_BYTECODE,
			   .nla_len = (uint16_t)(sizeof(head.filter) + question->filter_bytes)},
	};
	struct iovec parts[] = {{&head, sizeof(head)},
				{(void *)question->filter, question->filter_bytes}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	_Static_assert(offsetof(typeof(head), filter) ==
			       NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct inet_diag_req)),
		       "the attribute follows without a gap");
	if (question->request)
		return send(fd, question->request, question->request->nlmsg_len, 0) < 0 ? -errno
											: 0;
	if (!question->filter) {
		parts[0].iov_len = offsetof(typeof(head), filter);
		message.msg_iovlen = 1;
	}
	head.header.nlmsg_len = (uint32_t)(parts[0].iov_len + question->filter_bytes);
	return sendmsg(fd, &message, 0) < 0 ? -errno : 0;
}

/* Ask without a dump: the kernel looks up one socket, and sends nothing after it. */
static int send_one(const struct inet_diag_question *question, int fd, uint8_t family,
		    const struct inet_diag_sockid *id)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = {.nlmsg_len = sizeof(message),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.request = {.sdiag_family = family,
			    .sdiag_protocol = IPPROTO_TCP,
			    .idiag_ext = question->extensions,
			    .idiag_states = question->states,
			    .id = *id},
	};

	return send(fd, &message, sizeof(message), 0) < 0 ? -errno : 0;
}

/* Return 1 if more follows, 0 at the end, or -errno. */
static int take_message(const struct inet_diag_question *question, const struct nlmsghdr *header)
{
	size_t length = header->nlmsg_len - NLMSG_HDRLEN;

	if (header->nlmsg_type == NLMSG_DONE)
		return 0;
	if (header->nlmsg_type == NLMSG_ERROR && length >= sizeof(struct nlmsgerr))
		return ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
	if (length < (question->request ? question->least : sizeof(struct inet_diag_msg)))
		return -EPROTO;
	question->visit(question->context, NLMSG_DATA(header), length);
	return 1;
}

static int take_answer(const struct inet_diag_question *question, const char *answer, size_t length)
{
	int more = 1;

	for (size_t at = 0; more > 0 && at + NLMSG_HDRLEN <= length;) {
		const struct nlmsghdr *header = (const struct nlmsghdr *)(answer + at);

		if (header->nlmsg_len < NLMSG_HDRLEN || header->nlmsg_len > length - at)
			return -EPROTO;
		more = take_message(question, header);
		at += NLMSG_ALIGN(header->nlmsg_len);
	}
	return more;
}

/* Read to the kernel's end message, or only the first part if @one. */
static int read_answer(const struct inet_diag_question *question, int fd, bool one)
{
	_Alignas(struct nlmsghdr) char answer[INET_DIAG_ANSWER_MAX];
	int r = 0;

	for (int more = 1; !r && more > 0;) {
		ssize_t length = recv(fd, answer, question->answer_bytes, MSG_TRUNC);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		if (!length || (size_t)length > question->answer_bytes)
			return -EPROTO;
		more = take_answer(question, answer, (size_t)length);
		r = more < 0 ? more : 0;
		if (one)
			break;
	}
	return r;
}

int inet_diag_ask(const struct inet_diag_question *question)
{
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int r = fd < 0 ? -errno : send_question(question, fd);

	return r ? r : read_answer(question, fd, false);
}

int inet_diag_ask_one(const struct inet_diag_question *question, uint8_t family,
		      const struct inet_diag_sockid *id)
{
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int r = fd < 0 ? -errno : send_one(question, fd, family, id);

	return r ? r : read_answer(question, fd, true);
}

const void *inet_diag_attribute(const struct inet_diag_msg *socket, size_t length, uint16_t type,
				size_t least)
{
	for (size_t at = NLMSG_ALIGN(sizeof(*socket)); at + NLA_HDRLEN <= length;) {
		const struct nlattr *attribute = (const struct nlattr *)((const char *)socket + at);

		if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > length - at)
			return NULL;
		if (attribute->nla_type == type && attribute->nla_len >= NLA_HDRLEN + least)
			return (const char *)attribute + NLA_HDRLEN;
		at += NLA_ALIGN(attribute->nla_len);
	}
	return NULL;
}
