// SPDX-License-Identifier: MIT
/* System calls for datagrams. Neighbour: flow.c knows their contents. */
#include "datagram.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* Linux 4.18 */
#endif

/* A buffer holds a datagram of any size; the extra bytes keep buffers from sharing cache sets. */
#define BUFFER_SIZE   65536U
#define BUFFER_STRIDE (BUFFER_SIZE + 192U)

struct datagram_io {
	bool segments_refused;
	struct mmsghdr messages[DATAGRAM_BATCH];
	struct iovec pieces[DATAGRAM_BATCH];
	_Alignas(struct cmsghdr) char segment[CMSG_SPACE(sizeof(uint16_t))];
	unsigned int buffers;
	char bytes[];
};

/* Memory that no datagram has reached costs nothing. */
struct datagram_io *datagram_io_new(bool batch)
{
	unsigned int buffers = batch ? DATAGRAM_BATCH : 1;
	struct datagram_io *io = calloc(1, sizeof(*io) + (size_t)buffers * BUFFER_STRIDE);

	if (io)
		io->buffers = buffers;
	return io;
}

/* Return whether these can leave as segments of one: equal lengths, the last may be shorter. */
static bool are_segments(const struct iovec *list, unsigned int count)
{
	size_t length = list[0].iov_len, sum = length;

	if (!length)
		return false;
	for (unsigned int i = 1; i < count; i++) {
		if (list[i].iov_len > length || !list[i].iov_len)
			return false;
		if (list[i].iov_len < length && i + 1 < count)
			return false;
		sum += list[i].iov_len;
	}
	return sum <= DATAGRAM_SIZE_MAX;
}

static int send_segments(struct datagram_io *io, int fd, const struct iovec *list,
			 unsigned int count)
{
	struct msghdr message = {
		.msg_iov = (struct iovec *)list, /* sendmsg() does not write to it */
		.msg_iovlen = count,
		.msg_control = io->segment,
		.msg_controllen = sizeof(io->segment),
	};
	const uint16_t size = (uint16_t)list[0].iov_len;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = IPPROTO_UDP;
	head->cmsg_type = UDP_SEGMENT;
	head->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(head), &size, sizeof(size));
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? -errno : (int)count;
}

static int send_each(struct datagram_io *io, int fd, const struct iovec *list, unsigned int count)
{
	int sent;

	for (unsigned int i = 0; i < count; i++)
		io->messages[i].msg_hdr = (struct msghdr){
			.msg_iov = (struct iovec *)&list[i],
			.msg_iovlen = 1,
		};
	sent = sendmmsg(fd, io->messages, count, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

/* Return whether the error concerns segments: kernel, device or path refuse them. */
static bool is_about_segments(int err)
{
	return err == -EINVAL || err == -EMSGSIZE || err == -EIO || err == -EOPNOTSUPP ||
	       err == -ENOPROTOOPT;
}

int datagram_send(struct datagram_io *io, int fd, const struct iovec *list, unsigned int count)
{
	int sent;

	if (count == 1)
		return datagram_send_one(fd, list);
	if (!io->segments_refused && are_segments(list, count)) {
		sent = send_segments(io, fd, list, count);
		if (!is_about_segments(sent))
			return sent;
		io->segments_refused = true;
	}
	return send_each(io, fd, list, count);
}

static int receive_one(struct datagram_io *io, int fd, struct datagram *ret_datagram)
{
	ssize_t length = recv(fd, io->bytes, BUFFER_SIZE, MSG_DONTWAIT);

	if (length < 0)
		return -errno;
	*ret_datagram = (struct datagram){io->bytes, (size_t)length};
	return 1;
}

int datagram_receive(struct datagram_io *io, int fd, unsigned int count, struct datagram *ret_list)
{
	int received;

	if (count == 1 || io->buffers == 1)
		return receive_one(io, fd, ret_list);
	for (unsigned int i = 0; i < count; i++) {
		io->pieces[i] = (struct iovec){io->bytes + (size_t)i * BUFFER_STRIDE, BUFFER_SIZE};
		io->messages[i].msg_hdr =
			(struct msghdr){.msg_iov = &io->pieces[i], .msg_iovlen = 1};
	}
	received = recvmmsg(fd, io->messages, count, MSG_DONTWAIT, NULL);
	for (int i = 0; i < received; i++)
		ret_list[i] = (struct datagram){io->pieces[i].iov_base, io->messages[i].msg_len};
	return received < 0 ? -errno : received;
}

static int code_of(struct msghdr *message)
{
	struct sock_extended_err error;
	bool ours;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		ours = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		       (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
		if (!ours)
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof(error));
		return (int)error.ee_errno;
	}
	return EIO;
}

int datagram_take_error(struct datagram_io *io, int fd, int *ret_code, struct datagram *ret_about)
{
	union {
		char bytes[512];
		struct cmsghdr align;
	} control;
	struct iovec piece = {io->bytes, BUFFER_SIZE};
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t length = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (length < 0)
		return -errno;
	*ret_code = code_of(&message);
	*ret_about = (struct datagram){io->bytes, (size_t)length};
	return 0;
}

uint32_t datagram_drops(int fd)
{
	uint32_t values[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof(values);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &length))
		return 0;
	return values[SK_MEMINFO_DROPS];
}

void datagram_want_errors(int fd, int family)
{
	const int on = 1;

	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	else
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
}
