// SPDX-License-Identifier: MIT
/* A word and a descriptor as one message of unix(7); see passing.h. */
#include "passing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int passing_send(int socket, int32_t word, int fd, int flags)
{
	union control control = {.header = {.cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS,
					    .cmsg_len = CMSG_LEN(sizeof(fd))}};
	struct iovec part = {&word, sizeof(word)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int passing_receive(int socket, int32_t *ret_word, int *ret_fd)
{
	union control control;
	struct iovec part = {ret_word, sizeof(*ret_word)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t n;

	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != sizeof(*ret_word))
		return -EPIPE;
	*ret_fd = -1;
	if (message.msg_controllen >= CMSG_LEN(sizeof(*ret_fd)))
		memcpy(ret_fd, CMSG_DATA(&control.header), sizeof(*ret_fd));
	return 0;
}
