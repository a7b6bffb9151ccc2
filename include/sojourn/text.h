/* SPDX-License-Identifier: MIT */
/* Texts that came from elsewhere, such as the name that a process gives itself. */
#ifndef SOJOURN_TEXT_H
#define SOJOURN_TEXT_H

/*
 * Puts @substitute for whatever would end the line, control a terminal (C0, C1), turn or hide text (bidirectional and
 * invisible marks), and for each byte that is no UTF-8; the text gets no longer. Other UTF-8 stays as it is.
 */
void text_make_printable(char *text, char substitute);

/* What is not UTF-8 has its foreign bytes replaced by '?', in place: JSON and metrics must be UTF-8. */
void text_make_utf8(char *text);

#endif
