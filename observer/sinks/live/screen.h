/* SPDX-License-Identifier: MIT */
/*
 * The terminal: taken over, written to, and given back on every way out, a crash included. All text
 * of the live view goes through here; nothing else knows of colours or of what the terminal can show.
 */
#ifndef OBSERVER_SINKS_LIVE_SCREEN_H
#define OBSERVER_SINKS_LIVE_SCREEN_H

#include <stdbool.h>

#include "wire/stage.h"

/* Of text; a stage has one of its own. */
enum live_styles {
	LIVE_PLAIN,
	LIVE_BOLD,
	LIVE_DIM,
	LIVE_TITLE, /* reverse */
	LIVE_ALARM,
	LIVE_NOTICE,
	LIVE_HUNG,  /* louder than all others */
	LIVE_STAGE, /* + enum stage, to its last */
	LIVE_STYLES = LIVE_STAGE + STAGE_COUNT
};

enum live_align {
	LIVE_LEFT,
	LIVE_RIGHT
};

/*
 * Takes the terminal over. -ENOTTY: standard input or output is none; -EOPNOTSUPP: of a kind that
 * cannot be drawn on; -EBUSY: it is taken already.
 */
int live_screen_open(void);
/* Gives it back as it was. Does nothing if it is not taken. */
void live_screen_close(void);

void live_screen_begin(void); /* an empty page */
void live_screen_end(void);   /* shows it */
void live_screen_resize(void);
int live_screen_rows(void);
int live_screen_columns(void);

/* The next key that was typed, KEY_… of curses.h or a byte; -1: none. */
int live_screen_key(void);

/*
 * Writes UTF-8 text into @width columns from @x on, cut off or filled with blanks; what the terminal
 * cannot show is replaced. Off the screen, nothing is written.
 */
void live_put(int y, int x, int width, unsigned int style, enum live_align align, const char *text);
/* The same from @x to the end of the line, from a format. */
__attribute__((format(printf, 4, 5))) void live_line(int y, int x, unsigned int style,
						     const char *format, ...);

/* Whether characters beyond ASCII can be shown. */
bool live_screen_utf8(void);

#endif
