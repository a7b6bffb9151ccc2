// SPDX-License-Identifier: MIT
/*
 * Go's crypto/tls, by the instructions of its functions; see clear_go.h. A return probe replaces the return address on the
 * stack. Go's runtime walks and moves its stacks, finds an address that is none of its own, and ends the program. So each
 * function is disassembled, and probes are at its RET instructions.
 */
#include "clear_go.h"

#include <errno.h>

#if defined(__x86_64__)
#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/programs/golang.h"
#include "sojourn/cleanup.h"
#include "wire/clear.h"

/*
 * The handshake of a server, and not Handshake() or HandshakeContext(): each read and write calls these again. They may be
 * inlined, too.
 */
static const char *const names[] = {
	"crypto/tls.(*Conn).Write",
	"crypto/tls.(*Conn).serverHandshake",
	"crypto/tls.(*Conn).Read",
};

static const uint32_t probes[] = {
	CLEAR_PROBE(CLEAR_WRITE, CLEAR_GO),
	CLEAR_PROBE(CLEAR_HANDSHAKE, CLEAR_GO),
	CLEAR_PROBE(CLEAR_READ, CLEAR_GO),
};

#define COUNT ARRAY_SIZE(names)

_Static_assert(ARRAY_SIZE(probes) == COUNT, "one for each name");

static int place_add(struct clear_places *places, uint64_t offset, uint32_t probe, bool leaves)
{
	if (places->count == CLEAR_PLACES_MAX)
		return -ENOTSUP;
	places->list[places->count++] =
		(struct clear_place){.offset = offset, .probe = probe, .leaves = leaves};
	return 0;
}

/* Return whether the instruction at @at jumps out of the function: its return would be that of another one. */
static bool jumps_out(const ZydisDecodedInstruction *instruction, uint32_t at, uint32_t size)
{
	int64_t target = (int64_t)at + instruction->length + instruction->raw.imm[0].value.s;

	if (instruction->meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
	    instruction->meta.category != ZYDIS_CATEGORY_COND_BR)
		return false;
	return instruction->raw.imm[0].is_relative && (target < 0 || target >= size);
}

static int find_returns(const uint8_t *code, const struct golang_function *function, uint32_t probe,
			struct clear_places *places)
{
	ZydisDecodedInstruction instruction;
	ZydisDecoder decoder;
	size_t before = places->count;
	int r = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t at = 0; !r && at < function->size; at += instruction.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &decoder, NULL, code + at, function->size - at, &instruction)) ||
		    jumps_out(&instruction, at, function->size))
			return -ENOTSUP;
		if (instruction.mnemonic == ZYDIS_MNEMONIC_RET)
			r = place_add(places, function->offset + at, probe, true);
	}
	return r || places->count > before ? r : -ENOTSUP;
}

static int find_places(int fd, const struct golang_function *function, uint32_t probe,
		       struct clear_places *places)
{
	autofree uint8_t *code = malloc(function->size);
	int r = -ENOMEM;

	if (code)
		r = pread(fd, code, function->size, (off_t)function->offset) ==
				    (ssize_t)function->size
			    ? 0
			    : -ENOEXEC;
	if (!r)
		r = find_returns(code, function, probe, places);
	return r ? r : place_add(places, function->offset, probe, false);
}

int clear_go_find(int fd, struct clear_places *ret_places)
{
	struct golang_function functions[COUNT];
	struct clear_places places = {};
	int r = golang_find(fd, names, COUNT, functions);

	for (size_t i = 0; !r && i < COUNT; i++)
		r = find_places(fd, &functions[i], probes[i], &places);
	if (!r)
		*ret_places = places;
	return r;
}
#else
int clear_go_find(int fd, struct clear_places *ret_places)
{
	(void)fd;
	(void)ret_places;
	return -ENOENT;
}
#endif
