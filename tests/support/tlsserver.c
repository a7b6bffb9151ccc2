// SPDX-License-Identifier: MIT
/*
 * An HTTPS server by OpenSSL or BoringSSL, for one connection at a time: CERTIFICATE KEY. It logs "status method target
 * protocol" of each request once it is answered. Tests build it with the library in the program, and without; with
 * -D FIRST_READ it leaves the handshake to SSL_read().
 */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int status_of(const char *target)
{
	if (!strncmp(target, "/api/", 5))
		return 404;
	return strcmp(target, "/exact") ? 200 : 503;
}

/* Return 0 at the end of the connection. */
static int answer(SSL *ssl)
{
	char head[16384], method[16], target[8192], response[128];
	int have = 0, status;

	while (!have || !strstr(head, "\r\n\r\n")) {
		int n = SSL_read(ssl, head + have, (int)sizeof(head) - 1 - have);

		if (n <= 0)
			return 0;
		have += n;
		head[have] = 0;
	}
	if (sscanf(head, "%15s %8191s", method, target) != 2)
		return 0;
	status = status_of(target);
	snprintf(response, sizeof(response), "HTTP/1.1 %d Said\r\nContent-Length: 2\r\n\r\nok",
		 status);
	SSL_write(ssl, response, (int)strlen(response));
	printf("%d %s %s HTTP/1.1\n", status, method, target);
	fflush(stdout);
	return 1;
}

int main(int argc, char **argv)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 3 || SSL_CTX_use_certificate_chain_file(context, argv[1]) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) != 1 ||
	    bind(listener, (struct sockaddr *)&address, size) || listen(listener, 9))
		return 1;
	getsockname(listener, (struct sockaddr *)&address, &size);
	fprintf(stderr, "port %d\n", ntohs(address.sin_port));
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		SSL *ssl = SSL_new(context);

		SSL_set_fd(ssl, fd);
		SSL_set_accept_state(ssl);
#ifndef FIRST_READ
		SSL_accept(ssl);
#endif
		while (answer(ssl))
			;
		SSL_free(ssl);
		close(fd);
	}
}
