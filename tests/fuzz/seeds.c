// SPDX-License-Identifier: MIT
/*
 * Seeds of the fuzz targets: `fuzz_seeds TARGET DIRECTORY` writes a file per seed. Documents are
 * the unit tests', scenarios those of docs/examples. The rest is a valid example of everything that
 * a target parses. tools/fuzz makes its dictionaries from them.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/join.h"
#include "sojourn/run.h"
#include "support/runs.h"

static const char *folder;

static void write_seed(const char *bytes, size_t length)
{
	static unsigned int number;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/seed-%03u", folder, number++);
	file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
		fprintf(stderr, "fuzz_seeds: %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

/* ---- run documents ---- */

static struct run *merged(void)
{
	struct run *run = support_observer_run();
	autorun struct run *driver = support_driver_run();
	autofree char *error = NULL;

	if (run_merge(run, driver, &error))
		exit(1);
	return run;
}

static struct run *joined(void)
{
	struct run *run = support_sampled_run();

	if (join_run(run, JOIN_SLOWEST))
		exit(1);
	join_drop_samples(run);
	return run;
}

static struct run *split_up(void)
{
	struct run *run = support_observer_run();

	support_split(&run->services[0], 100);
	support_send_stages(&run->services[0], 10);
	support_miss_stage(&run->services[0], STAGE_SOCKET_QUEUE, "not there");
	support_add_service(run, 8081, 7);
	return run;
}

static struct run *(*const makers[])(void) = {
	support_full_run, support_observer_run, support_driver_run, merged, joined, split_up,
};

#define DOCUMENTS ARRAY_SIZE(makers)

/* Return a document as JSON; the caller frees it. */
static char *document(size_t index)
{
	autorun struct run *run = makers[index]();
	char *text = run_to_json(run);

	if (!text)
		exit(1);
	return text;
}

static void write_documents(void)
{
	for (size_t i = 0; i < DOCUMENTS; i++) {
		autofree char *text = document(i);

		write_seed(text, strlen(text));
	}
}

/* Write each document, and each with the next one, to be compared. */
static void write_pairs(void)
{
	write_documents();
	for (size_t i = 0; i < DOCUMENTS; i++) {
		autofree char *a = document(i), *b = document((i + 1) % DOCUMENTS), *both = NULL;

		if (asprintf(&both, "%s\x1e%s", a, b) < 0)
			exit(1);
		write_seed(both, strlen(both));
	}
}

/* Append a document as one line: a line of a recording is a reading. */
static void append_line(FILE *file, size_t index)
{
	autofree char *text = document(index);

	for (char *c = text; *c; c++)
		if (*c != '\n')
			fputc(*c, file);
	fputc('\n', file);
}

#define RECORDING_HEAD \
	"{\"schema\":\"sojourn.recording/1\",\"tool\":\"sojourn 0\",\"interval_ns\":1000000000}\n"

static void write_recordings(void)
{
	for (unsigned int sessions = 1; sessions <= 2; sessions++) {
		autofree char *text = NULL;
		size_t length;
		FILE *file = open_memstream(&text, &length);

		if (!file)
			exit(1);
		for (unsigned int i = 0; i < sessions; i++) {
			fputs(RECORDING_HEAD, file);
			append_line(file, 1);
			append_line(file, DOCUMENTS - 1);
		}
		if (sessions == 2)
			fputs("no reading\n{\"schema\":\"sojourn.run/1\"", file);
		if (fclose(file))
			exit(1);
		write_seed(text, length);
	}
}

/* ---- scenarios ---- */

#define FILES                            \
	"\x1e{\"a\": \"{{row:a}}\"}\x1e" \
	"a,b\n1,2\n3,4\n"

static void write_examples(void)
{
	static const char with_files[] =
		"target: http://127.0.0.1:80\nload:\n  rate: 100\n  duration: 1s\n"
		"assert: p99<10ms\norder: mix\non-failure: next\nsteps:\n"
		"  - name: a\n    weight: 2\n    think: 1ms\n    data: body\n    body: '@body'\n"
		"  - name: b\n    set: {a: '{{random:1-2}}'}\n    expect-body: x\n" FILES;
	static const char rows[] = "target: http://127.0.0.1:80\ndefaults:\n  rows: rows\nsteps:\n"
				   "  - name: a\n    method: POST\n    body: '@body'\n" FILES;
	autofree char *name = NULL;
	DIR *examples = opendir(DOCS_DIR "/examples");

	if (!examples)
		exit(1);
	for (const struct dirent *entry = readdir(examples); entry; entry = readdir(examples)) {
		char path[512], text[8192];
		FILE *file;

		snprintf(path, sizeof(path), DOCS_DIR "/examples/%s", entry->d_name);
		file = strstr(path, ".yaml") ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		write_seed(text, fread(text, 1, sizeof(text), file));
		fclose(file);
	}
	closedir(examples);
	write_seed(with_files, strlen(with_files));
	write_seed(rows, strlen(rows));
}

/* ---- the rest: examples by hand ---- */

#define SEED(target, bytes) {target, bytes, sizeof(bytes) - 1}

/* clang-format off */
static const struct {
	const char *target, *bytes;
	size_t length;
} seeds[] = {
	/* The framing's number in the target's table, the length of pieces, a response. */
	SEED("framing", "\x00\x01" "seven77"),
	SEED("framing", "\x01\x03" "a line\r\n"),
	SEED("framing", "\x02\x02" "aabaabaa"),
	SEED("framing", "\x03\x01" "\x03" "abc"),
	SEED("framing", "\x04\x02" "\x05\x00" "abcd"),
	SEED("framing", "\x05\x07" "\x00\x00\x00\x02" "ab"),
	SEED("framing", "\x06\x03" "\x00\x00\x00\x00\x00\x00\x00\x00\x01" "a"),
	SEED("framing", "\x07\x02" "\x30\x82\x00\x03" "abc"),
	SEED("framing", "\x08\x04" "\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00"),
	SEED("framing", "\x08\x04" "\x30\x05\x02\x01\x01\x64\x00\x30\x05\x02\x01\x01\x65\x00"),
	SEED("framing", "\x09\x02" "*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n"),
	SEED("framing", "\x09\x05" "+OK\r\n"),
	SEED("framing", "\x09\x05" "%1\r\n+a\r\n_\r\n"),
	SEED("framing", "\x09\x05" "-ERR no\r\n"),
	SEED("framing", "\x0a\x01" "ping"),
	SEED("framing", "\x0b\x01" "whatever"),
	SEED("framing", "\x0c\x05" "\x00\x1d\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x01" "a\x00\x00\x01\x00\x01"),

	/* Bits, the length of pieces, a response. */
	SEED("http_response", "\x00\x01HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
	SEED("http_response", "\x06\x05HTTP/1.1 200 OK\r\nX-Request: 17\r\nContent-Length: 24\r\n\r\n{\"a\": [{\"b\": \"id=31aab\"}]}"),
	SEED("http_response", "\x02\x03HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n3;x=y\r\naab\r\n0\r\nA: b\r\n\r\n"),
	SEED("http_response", "\x01\x07HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 9\r\n\r\n"),
	SEED("http_response", "\x00\x09HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
	SEED("http_response", "\x04\x10HTTP/1.1 200 OK\r\n\r\n{\"a\":[{\"b\":true}]}"),
	/* A header without name and value once had an offset to no bytes. */
	SEED("http_response", "\x06\x05HTTP/1.0 200 Oh2c\x92-L: 24\rg:\r\":1"),
	SEED("http_response", "\x00\x02HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"),

	/* The parser's number in the target's table, a value. */
	SEED("options", "\x00http://[::1]:8080/a?b=c#d"), SEED("options", "\x00h2c://localhost/"),
	SEED("options", "\x00udp://127.0.0.1:53"), SEED("options", "\x00unix:/run/a.sock"),
	SEED("options", "\x00https://user@server1.example/%20"),
	SEED("options", "\x01length:2,le,offset=1,adjust=-1,max=100"), SEED("options", "\x01" "delimiter:\\x0d\\n"),
	SEED("options", "\x01resp"), SEED("options", "\x01" "fixed:12"), SEED("options", "\x01ldap"),
	SEED("options", "\x02id:4,le,offset=2,reply-offset=3"), SEED("options", "\x02" "echo"),
	SEED("options", "\x03{{counter}} {{uuid}} {{random:1-9}} {{random-hex:8}} {{counter:5}} {{client:2}} {{timestamp-ms}}"),
	SEED("options", "\x03\{{a}} {{counter-be:2}} {{counter-le:8}} {{random-bytes:3}} {{row:1}} {{var:a}}"),
	SEED("options", "\x04" "127.0.0.1-127.0.0.9:1024-65535"), SEED("options", "\x04" "::1,127.0.0.2:4000"),
	SEED("options", "\x05" "a\\x00\\r\\n\\t\\\\"),

	/* --match, a request, a reply. */
	SEED("match", "order\nab\x1e" "cd"), SEED("match", "echo\nabc\x1e" "abc"),
	SEED("match", "id:2\nabcd\x1e" "abcd"), SEED("match", "id:4,le,offset=1\n0123456\x1e" "0123456"),
	SEED("match", "id:8,be,offset=0,reply-offset=2\n01234567\x1e" "0101234567"),

	/* The length of pieces, then a server's bytes or a file of credentials. */
	SEED("nats", "\x02INFO {\"max_payload\":1048576,\"nonce\":\"n\"}\r\n+OK\r\nPING\r\nPONG\r\n"),
	SEED("nats", "\x04MSG a.b 1 reply 5\r\nPO\r\nG\r\n-ERR 'Authorization Violation'\r\n"),
	SEED("nats", "\x09user:password\n"), SEED("nats", "\x09token\n"),
	SEED("nats", "\x09SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n"),
	SEED("nats", "\x09-----BEGIN NATS USER JWT-----\neyJ0\n-----BEGIN USER NKEY SEED-----\n"
	     "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n"),

	/* The length of pieces, then lines of the channel. */
	SEED("fleet", "\x07" "{\"type\":\"file\",\"file\":0,\"length\":4,\"base64\":\"cm93Cg==\"}\n"
	     "{\"type\":\"plan\",\"arguments\":[{\"option\":\"--rows=\",\"file\":0},\"--connections=4\",\"http://127.0.0.1:80/{{row}}\"],\"member\":0,\"members\":2,\"samples\":10,\"patience_ms\":5000}\n"),
	SEED("fleet", "\x25" "{\"type\":\"plan\",\"arguments\":[\"--rate=1000\",\"--duration=10s\",\"--threads=2\",\"--connections=8\",\"--source=127.0.0.2-127.0.0.9\",\"http://127.0.0.1/\"],\"sweep\":true,\"pauses\":true,\"member\":0,\"members\":2,\"samples\":10,\"patience_ms\":5000}\n"
	     "{\"type\":\"step\",\"member\":0,\"members\":2,\"threads\":1,\"connections\":4,\"rate\":100,\"warmup_ns\":0,\"interval_ns\":1000000000,\"keep_trying\":true}\n"),
	SEED("fleet", "\x43" "{\"type\":\"file\",\"file\":0,\"length\":82,\"base64\":\"c2NlbmFyaW86CiAgdGFyZ2V0OiBodHRwOi8vMTI3LjAuMC4xCiAgc3RlcHM6CiAgICAtIG5hbWU6IGEKICAgICAgcmVxdWVzdDoge3BhdGg6IC99Cg==\"}\n"
	     "{\"type\":\"plan\",\"paths\":[\"s.yaml\"],\"arguments\":[\"--connections=4\"],\"member\":0,\"members\":2,\"samples\":10,\"patience_ms\":5000}\n"),
	SEED("fleet", "\x61" "{\"type\":\"plan\",\"arguments\":[\"--protocol=redis\",\"--framing=line\",\"tcp://[::1]:6379\"],\"member\":0,\"members\":2,\"samples\":10,\"patience_ms\":5000}\n"),
	SEED("fleet", "\x7f" "{\"type\":\"document\",\"final\":false,\"last\":false,\"text\":\"{\\\"schema\\\": \"}\n"
	     "{\"type\":\"document\",\"final\":true,\"last\":true,\"text\":\"1}\"}\n"
	     "{\"type\":\"document\",\"text\":\"\\u00e4\",\"last\":true}\n"),
	SEED("fleet", "\x9d" "{\"type\":\"begin\",\"place\":\"here\",\"targets\":[{\"name\":\"http://a/\",\"host\":\"a\",\"port\":80,\"addresses\":[\"127.0.0.1\",\"::1\",\"192.0.2.1\"]}]}\n"),
	SEED("fleet", "\xbb" "{\"type\":\"hello\",\"protocol\":5,\"version\":\"1\"}\n"
	     "{\"type\":\"ready\",\"max_rate\":0}\n"
	     "{\"type\":\"pong\",\"number\":1,\"wall_ns\":1}\n"
	     "{\"type\":\"beat\",\"requests\":1}\n"
	     "{\"type\":\"error\",\"text\":\"no\"}\n"),

	/* A status, the expectation, the length of pieces and messages. */
	SEED("grpc", "0\n\n\x02\x00\x00\x00\x00\x02" "ab"), SEED("grpc", "5\n0,not_found\n\x01"),
	SEED("grpc", "13\nok\n\x03\x01\x00\x00\x00\x01" "a\x00\x00\x00\x00\x00"),

	/* Bits, and frames in the target's form: type, flags, stream, length, payload. */
	SEED("http2", "\x06\x01\x05\x01\x01\x88"),
	SEED("http2", "\x06\x01\x04\x01\x01\x88" "\x00\x01\x01\x03" "abc"),
	SEED("http2", "\x07\x01\x04\x01\x01\x88" "\x00\x00\x01\x07\x00\x00\x00\x00\x02" "ab"
		      "\x01\x05\x01\x0f\x40\x0bgrpc-status\x01" "0"),
	SEED("http2", "\x06\x01\x04\x01\x05\x08\x03" "404" "\x00\x01\x01\x00" "\x01\x05\x03\x01\x88"),
	SEED("http2", "\x06\x03\x00\x01\x04\x00\x00\x00\x07" "\x03\x00\x03\x04\x00\x00\x00\x08"),
	SEED("http2", "\x06\x07\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00"),
	SEED("http2", "\x06\x04\x00\x00\x06\x00\x03\x00\x00\x00\x01" "\x06\x00\x00\x08" "pingpong"
		      "\x08\x00\x00\x04\x00\x00\x10\x00"),
	SEED("http2", "\x06\x04\x00\x00\x0c\x00\x01\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00"
		      "\x09\x04\x01\x01\x88"),
	SEED("http2", "\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00" "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88"),
	SEED("http2", "\x00HTTP/1.1 400 Bad Request\r\n\r\n"), SEED("http2", "\x04\x15\x03\x01\x00\x02\x02\x46"),

	/* The sender and the length of pieces, then frames as on the wire. */
	SEED("http2_streams", "\x01\x00\x00\x06\x04\x00\x00\x00\x00\x00" "\x00\x03\x00\x00\x00\x64"
	     "\x00\x00\x01\x01\x05\x00\x00\x00\x01" "\x88" "\x00\x00\x00\x04\x01\x00\x00\x00\x00"),
	SEED("http2_streams", "\x00\x00\x00\x01\x01\x04\x00\x00\x00\x01" "\x88"
	     "\x00\x00\x03\x00\x00\x00\x00\x00\x01" "abc" "\x00\x00\x00\x00\x01\x00\x00\x00\x01"),
	SEED("http2_streams", "\x03\x00\x00\x06\x01\x29\x00\x00\x00\x03" "\x00\x00\x00\x01\x10\x88"
	     "\x00\x00\x01\x09\x04\x00\x00\x00\x03" "\x88" "\x00\x00\x04\x00\x08\x00\x00\x00\x03" "\x02" "a\x00\x00"),
	SEED("http2_streams", "\x04\x00\x00\x04\x03\x00\x00\x00\x00\x01" "\x00\x00\x00\x08"
	     "\x00\x00\x04\x08\x00\x00\x00\x00\x00" "\x00\x00\x10\x00" "\x00\x00\x08\x06\x00\x00\x00\x00\x00" "pingpong"),
	SEED("http2_streams", "\x0f\x00\x00\x08\x07\x00\x00\x00\x00\x00" "\x00\x00\x00\x01\x00\x00\x00\x00"
	     "\x00\x00\x04\x05\x04\x00\x00\x00\x01" "\x00\x00\x00\x02" "\x00\x00\x05\x02\x00\x00\x00\x00\x01" "\x00\x00\x00\x00\x10"),
	SEED("http2_streams", "\x02\x00\x00\x0b\x01\x2c\x00\x00\x00\x01" "\x01\x00\x00\x00\x01\x10\x48\x82\x10\x01\x00"
	     "\x00\x00\x06\x01\x05\x00\x00\x00\x03" "\x20\x08\x03" "418" "\x00\x00\x01\x01\x05\x00\x00\x00\x05" "\xbe"),
	SEED("http2_streams", "\x08\x00\x00\x1f\x01\x04\x00\x00\x00\x03" "\x88\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64"
	     "\x40\x0bgrpc-status\x02" "14" "\xbe" "\x00\x00\x0d\x01\x05\x00\x00\x00\x03" "\x00\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x82\x08\x3f"),
	SEED("http2_streams", "\x09\x00\x00\x08\x00\x00\x00\x00\x00\x01" "\x00\x00\x00\x00\x02" "ab" "\x01"
	     "\x00\x00\x09\x00\x09\x00\x00\x00\x01" "\x02" "\x00\x00\x00\x01" "c\x00" "\x00\x00"),
	SEED("http2_streams", "\x20HTTP/1.1 400 Bad Request\r\n\r\n"), SEED("http2_streams", "\x01\x00\x40\x01\x00\x00\x00\x00\x00\x01"),

	/* Bits and the length of pieces, then messages. */
	SEED("http1", "\x20GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\nGET /b HTTP/1.1\r\n\r\n"),
	SEED("http1", "\x3cPOST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloHEAD /b HTTP/1.0\r\n\r\nCONNECT a HTTP/1.1\r\n"),
	SEED("http1", "\x20PATCH /a HTTP/1.1\r\nContent-Type: a\r\nContent-Length: 1234\r\nTransfer: a\r\n\r\nhello"),
	SEED("http1", "\x0cPUT / HTTP/1.1\nTransfer-Encoding: gzip, chunked\n\n1a;b\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\nGET"),
	SEED("http1", "\x11HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.0 204 No Content\r\n\r\n"),
	SEED("http1", "\x1dHTTP/1.1 404\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 304 Not\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall"),
	SEED("http1", "\x0bHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTTP/1.1 101 Switching\r\nUpgrade: a\r\n\r\n\x81\x01"),

	/* The length of parts, then the length of a header block and its bytes. */
	SEED("postgres", "\x05" "\0\0\0\x08\x04\xd2\x16\x2f" "\0\0\0\x11\0\3\0\0user\0me\0\0" "p\0\0\0\x08pass" "Q\0\0\0\x06a\0"),
	SEED("postgres", "\x0b" "P\0\0\0\x08\0\0\0\0" "B\0\0\0\4" "H\0\0\0\4" "S\0\0\0\4" "c\0\0\0\4" "X\0\0\0\4"),
	SEED("postgres", "\x08" "NR\0\0\0\x08\0\0\0\0" "N\0\0\0\5\0" "Z\0\0\0\5I" "G\0\0\0\7\0\0\0" "C\0\0\0\5\0" "E\0\0\0\5\0" "Z\0\0\0\5I"),
	SEED("resp", "\x05" "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n*1\r\n" "*1\r\n$4\r\nPING\r\n" "ping\r\n" "get a\r\n"),
	SEED("resp", "\x07" "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n" "*0\r\n\r\n*-1\r\n"),
	SEED("resp", "\x04" "*2\r\n:1\r\n*1\r\n$1\r\na\r\n" "+OK\r\n-ERR a\r\n$-1\r\n*-1\r\n" "%1\r\n+a\r\n#t\r\n"),
	SEED("resp", "\x08" ">2\r\n+a\r\n~1\r\n,1.5\r\n" "|1\r\n+a\r\n_\r\n(12\r\n" "=6\r\ntxt:ab\r\n!3\r\nERR\r\n"),
	SEED("pushes", "\x02\x81\x05Hello\x01\x03Hel\x89\x00\x80\x02lo\x88\x02\x03\xe8"),
	SEED("pushes", "\x01\x81\x85maskHello\x41\x82maskab\x80\x81maskc\x8a\x84maskping"),
	SEED("pushes", "\x04\x82\x7e\x00\x02" "ab\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01" "c\xc2\x00"),
	SEED("pushes", "\x06" "data: a\n\nevent: add\r\ndata:b\r\rid\n\ndata\n\n: alive\n\n"),
	SEED("pushes", "\x00\xef\xbb\xbf" "data: a line of some words\n\n\xef" "data"),
	SEED("request", "GET /ab?c=d HTTP/1.1\r\n"), SEED("request", "\r\nPOST http://test.example/ab HTTP/1.1\r\n"),
	SEED("request", "A-B_C /a HTTP/1.1\r\n"), SEED("request", "OPTIONS * HTTP/1.1\r\n"),
	SEED("request", "GET http://test?a HTTP/1.0\r\n"), SEED("request", "CONNECT 127.0.0.1:80 HTTP/1.1\r\n"),
	SEED("request", "HTTP/1.1 200 OK\r\n"), SEED("request", "HTTP/1.0 404\r\n"), SEED("request", "HTTP/1.1 099 No\r\n"),
	SEED("routes", "\x03\x02\x82\x84" "\x06\x83\x44\x03/ab" "\x02\x83\xbe" "\x03\x20\x82\x84"),
	SEED("routes", "\xff\x11\x00\x07:method\x03PUT\x84" "\x0a\x82\x40\x84\xb9\x58\xd3\x3f\x02/a" "\x06\x82\x05\x03/a?"),
	SEED("routes", "\x01\x06\x82\x44\x82\x60\xff\xbe" "\x08\x42\x05" "A-B_C\x85"),

	/* The check's number in the target's table, then lines. */
	SEED("http_endpoint", "\x00GET\n/\ntext/html\n"), SEED("http_endpoint", "\x00GET\n/\n*/*\n"),
	SEED("http_endpoint", "\x00GET\n/healthz\n"),
	SEED("http_endpoint", "\x00GET\n/v1/past\n\nlast\n600\nstep\n10\nport\n8080\n"), SEED("http_endpoint", "\x00HEAD\n/v1/run\n"),
	SEED("http_endpoint", "\x00GET\n/metrics\napplication/openmetrics-text;version=1.0.0;q=0.9,text/plain;q=0.5\n"),
	SEED("http_endpoint", "\x00GET\n/v1/services\n"), SEED("http_endpoint", "\x00GET\n/v1/findings\n"),
	SEED("http_endpoint", "\x00POST\n/v1/phases\n\nlease\n60\n"), SEED("http_endpoint", "\x00POST\n/v1/phases/7/renew\n"),
	SEED("http_endpoint", "\x00POST\n/v1/phases/7/end\n"), SEED("http_endpoint", "\x00PUT\n/v1/run\n"),
	SEED("http_endpoint", "\x01localhost:9180"), SEED("http_endpoint", "\x01[2001:db8::1]:9180"),
	SEED("http_endpoint", "\x02[::1]:9180"), SEED("http_endpoint", "\x02" "0.0.0.0:1"), SEED("http_endpoint", "\x02" "9180"),

	/* Bits, then a head. */
	SEED("http_guard", "\x00GET\nHost: localhost:9180\n"),
	SEED("http_guard", "\x01POST\nHost: 127.0.0.1\nAuthorization: Bearer token-that-may-do-everything\n"),
	SEED("http_guard", "\x02HEAD\nHost: [::1]\nAuthorization: bearer token-that-only-may-read-it\n"),
	SEED("http_guard", "\x02POST\nHost: [::1]\nAuthorization: Bearer token-that-only-may-read-it\n"),
	SEED("http_guard", "\x04POST\nHost: [2001:db8::1]:9180\nAuthorization: Bearer token-that-was-made-for-you\n"),
	SEED("http_guard", "\x58GET\nHost: localhost:9180\nOrigin: https://localhost:9180\n"),
	SEED("http_guard", "\x20GET\nHost: server1.example:443\nOrigin: http://server1.example:443\n"),
	SEED("http_guard", "\x10GET\nHost: localhost\nContent-Length: 1\nContent-Length: 2\n"),
};
/* clang-format on */

/* A shared library with two functions. */
static void write_library(void)
{
	static const char names[32] = "\0SSL_read\0SSL_write";
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Shdr sections[3];
		Elf64_Sym symbols[3];
		char names[sizeof(names)];
	} file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_offset = 0x1000,
			    .p_vaddr = 0x2000,
			    .p_filesz = 0x1000,
			    .p_memsz = 0x1000},
		.symbols = {{0},
			    {.st_name = 1,
			     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_shndx = 1,
			     .st_value = 0x2010},
			    {.st_name = 10,
			     .st_info = ELF64_ST_INFO(STB_WEAK, STT_FUNC),
			     .st_shndx = 1,
			     .st_value = 0x2020}},
	};

#ifdef __aarch64__
	file.header.e_machine = EM_AARCH64;
#else
	file.header.e_machine = EM_X86_64;
#endif
	file.header.e_phoff = (size_t)((char *)&file.segment - (char *)&file);
	file.header.e_shoff = (size_t)((char *)&file.sections - (char *)&file);
	file.sections[1] =
		(Elf64_Shdr){.sh_type = SHT_DYNSYM,
			     .sh_link = 2,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_offset = (size_t)((char *)&file.symbols - (char *)&file),
			     .sh_size = sizeof(file.symbols)};
	file.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
					.sh_offset = (size_t)((char *)&file.names - (char *)&file),
					.sh_size = sizeof(file.names)};
	memcpy(file.names, names, sizeof(names));
	write_seed((const char *)&file, sizeof(file));
}

static const struct {
	const char *target;
	void (*write)(void);
} made[] = {
	{"run_document", write_documents},
	{"report_forms", write_pairs},
	{"recording", write_recordings},
	{"scenario", write_examples},
	{"elf", write_library},
};

int main(int argc, char **argv)
{
	unsigned int written = 0;

	if (argc != 3) {
		fputs("Usage: fuzz_seeds TARGET DIRECTORY\n", stderr);
		return 2;
	}
	folder = argv[2];
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		if (strcmp(made[i].target, argv[1]))
			continue;
		made[i].write();
		written++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		if (strcmp(seeds[i].target, argv[1]))
			continue;
		write_seed(seeds[i].bytes, seeds[i].length);
		written++;
	}
	if (!written)
		fprintf(stderr, "fuzz_seeds: there are no seeds for '%s'\n", argv[1]);
	return !written;
}
