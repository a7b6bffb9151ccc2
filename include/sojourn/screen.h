/* SPDX-License-Identifier: MIT */
/*
 * The terminal: taken over, written to, and given back on every way out, a crash included. All text
 * of the live views goes through here; nothing else knows of colours or of what the terminal can show.
 * Linked from a library of its own (sojourn_screen), as it needs ncurses.
 */
#ifndef SOJOURN_SCREEN_H
#define SOJOURN_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wire/stage.h"

/* Of text; a stage has one of its own. */
enum screen_style {
	SCREEN_PLAIN,
	SCREEN_BOLD,
	SCREEN_DIM,
	SCREEN_TITLE, /* reverse */
	SCREEN_ALARM,
	SCREEN_NOTICE,
	SCREEN_HUNG,   /* louder than all others */
	SCREEN_ACCENT, /* charts */
	SCREEN_STAGE,  /* + enum stage, to its last */
	SCREEN_STYLES = SCREEN_STAGE + STAGE_COUNT
};

enum screen_align {
	SCREEN_LEFT,
	SCREEN_RIGHT
};

/*
 * Takes the terminal of @out over. @keys: what is typed there is read; NULL: it is left alone. -ENOTTY:
 * one of them is no terminal; -EOPNOTSUPP: of a kind that cannot be drawn on; -EBUSY: it is taken already.
 */
int screen_open(FILE *out, FILE *keys);
/* Gives it back as it was. Does nothing if it is not taken. */
void screen_close(void);

void screen_begin(void); /* an empty page */
void screen_end(void);	 /* shows it */
void screen_resize(void);
int screen_rows(void);
int screen_columns(void);

/* The next key that was typed, KEY_… of curses.h or a byte; -1: none. */
int screen_key(void);

/*
 * Writes UTF-8 text into @width columns from @x on, cut off or filled with blanks; what the terminal
 * cannot show is replaced. Off the screen, nothing is written.
 */
void screen_put(int y, int x, int width, unsigned int style, enum screen_align align,
		const char *text);
/* The same from @x to the end of the line, from a format. */
__attribute__((format(printf, 4, 5))) void screen_line(int y, int x, unsigned int style,
						       const char *format, ...);

/* Whether characters beyond ASCII can be shown, and whether styles differ by colour. */
bool screen_utf8(void);
bool screen_colour(void);

/* A bar of @share (0 … 1) of @width columns, to an eighth of one where the terminal can show it. */
void screen_bar(int y, int x, int width, unsigned int style, double share);

/*
 * Columns of a chart, a point each, from 0 to the largest; NAN, which is not known, is a blank. @y is its
 * upper line, of @height. Returns the largest, 0 if there is none.
 */
double screen_chart(int y, int x, int height, unsigned int style, const double *points,
		    size_t count);

#endif
