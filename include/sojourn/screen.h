/* SPDX-License-Identifier: MIT */
/*
 * The terminal: taken over, drawn on, and restored on every exit, even a crash. All text of the
 * live views passes here; nothing else knows colours or the terminal's abilities. In a library of
 * its own (sojourn_screen), as it needs ncurses.
 */
#ifndef SOJOURN_SCREEN_H
#define SOJOURN_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wire/stage.h"

/* The style of a text. */
enum screen_style {
	SCREEN_PLAIN,
	SCREEN_BOLD,
	SCREEN_DIM,
	SCREEN_TITLE, /* reverse */
	SCREEN_ALARM,
	SCREEN_NOTICE,
	SCREEN_HUNG,   /* the loudest */
	SCREEN_ACCENT, /* charts */
	SCREEN_STAGE,  /* plus enum stage */
	SCREEN_STYLES = SCREEN_STAGE + STAGE_COUNT
};

enum screen_align {
	SCREEN_LEFT,
	SCREEN_RIGHT
};

/*
 * Take over the terminal of @out. @keys: read typed keys there; NULL: do not. -ENOTTY: not a
 * terminal; -EOPNOTSUPP: cannot be drawn on; -EBUSY: already taken over.
 */
int screen_open(FILE *out, FILE *keys);
/* Restore the terminal, if it was taken over. */
void screen_close(void);

void screen_begin(void); /* start an empty page */
void screen_end(void);	 /* show it */
void screen_resize(void);
int screen_rows(void);
int screen_columns(void);

/* Return the next typed key, KEY_… of curses.h or a byte; -1: none. */
int screen_key(void);

/*
 * Write UTF-8 text into @width columns from @x on, cut or padded with blanks. Replace characters
 * that the terminal cannot show. Outside of the screen, write nothing.
 */
void screen_put(int y, int x, int width, unsigned int style, enum screen_align align,
		const char *text);
/* Write from @x to the end of the line, by a format. */
__attribute__((format(printf, 4, 5))) void screen_line(int y, int x, unsigned int style,
						       const char *format, ...);

/* Return whether non-ASCII characters can be shown, and whether styles have colours. */
bool screen_utf8(void);
bool screen_colour(void);

/* Draw a bar of @share (0 … 1) of @width columns, in eighths of a column where the terminal can. */
void screen_bar(int y, int x, int width, unsigned int style, double share);

/*
 * Draw a chart with a column per point, from 0 to the maximum; NAN (not known) is blank. @y: its
 * top line; @height: its lines. Return the maximum, or 0 without points.
 */
double screen_chart(int y, int x, int height, unsigned int style, const double *points,
		    size_t count);

#endif
