/* SPDX-License-Identifier: MIT */
/* meanings.txt, as text in the program. */
.section .rodata
.global run_meanings
run_meanings:
	.incbin "meanings.txt"
	.byte 0

.section .note.GNU-stack, "", %progbits
