// SPDX-License-Identifier: MIT
/* The terminal through ncurses, and its restoration; see sojourn/screen.h. Neighbour: draw.c. */
#include "sojourn/screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

/* Fatal signals, on which the terminal is restored by async-signal-safe calls. */
static const int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGSYS, SIGTRAP};

static struct {
	bool taken;
	bool utf8;
	bool colour;
	int fd; /* drawn on */
	SCREEN *screen;
	struct termios termios; /* the original state */
	char leave[256];	/* sequences that undo entering */
	size_t leave_length;
	attr_t styles[SCREEN_STYLES];
	struct sigaction actions[ARRAY_SIZE(deadly)];
	char *stack;
} terminal;

/* ---- a crash ---- */

/* SA_RESETHAND: the signal then has its default effect, such as a core dump. */
static void on_deadly(int number)
{
	if (terminal.taken) {
		/* Use only functions of signal-safety(7). */
		ssize_t n = write(terminal.fd, terminal.leave, terminal.leave_length);

		(void)n;
		terminal.taken = false;
		tcsetattr(terminal.fd, TCSANOW, &terminal.termios);
	}
	raise(number);
}

static bool has_sequence(const char *name)
{
	const char *text = tigetstr(name);

	return text && text != (char *)-1;
}

static void add_sequence(const char *name)
{
	const char *text = tigetstr(name);
	size_t length = has_sequence(name) ? strlen(text) : 0;

	if (!length || terminal.leave_length + length > sizeof(terminal.leave))
		return;
	memcpy(terminal.leave + terminal.leave_length, text, length);
	terminal.leave_length += length;
}

static void catch_deadly(void)
{
	struct sigaction action = {.sa_handler = on_deadly,
				   .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};
	stack_t stack = {.ss_size = (size_t)SIGSTKSZ};

	terminal.leave_length = 0;
	add_sequence("sgr0");
	add_sequence("cnorm");
	add_sequence("rmkx");
	add_sequence("rmcup");
	terminal.stack = malloc(stack.ss_size);
	stack.ss_sp = terminal.stack;
	if (terminal.stack)
		sigaltstack(&stack, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		sigaction(deadly[i], &action, &terminal.actions[i]);
}

static void uncatch_deadly(void)
{
	stack_t none = {.ss_flags = SS_DISABLE};

	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		sigaction(deadly[i], &terminal.actions[i], NULL);
	sigaltstack(&none, NULL);
	free(terminal.stack);
	terminal.stack = NULL;
}

/* ---- taking over ---- */

static void set_styles(void)
{
	static const short stage_colours[STAGE_RESIDENCE_END] = {
		COLOR_MAGENTA, COLOR_RED, COLOR_CYAN, COLOR_GREEN, COLOR_BLUE};
	const char *no = getenv("NO_COLOR");
	attr_t *styles = terminal.styles;

	styles[SCREEN_PLAIN] = A_NORMAL;
	styles[SCREEN_BOLD] = A_BOLD;
	styles[SCREEN_DIM] = A_DIM;
	styles[SCREEN_TITLE] = A_REVERSE;
	styles[SCREEN_ALARM] = A_BOLD;
	styles[SCREEN_NOTICE] = A_NORMAL;
	styles[SCREEN_HUNG] = A_BOLD | A_REVERSE;
	for (int i = 0; i < STAGE_COUNT; i++)
		styles[SCREEN_STAGE + i] = A_NORMAL;
	styles[SCREEN_ACCENT] = A_NORMAL;
	terminal.colour = false;
	if ((no && *no) || !has_colors() || start_color() != OK || use_default_colors() != OK)
		return;
	terminal.colour = true;
	init_pair(1, COLOR_RED, -1);
	init_pair(2, COLOR_YELLOW, -1);
	init_pair(3, COLOR_CYAN, -1);
	styles[SCREEN_ACCENT] |= (attr_t)COLOR_PAIR(3);
	styles[SCREEN_ALARM] |= (attr_t)COLOR_PAIR(1);
	styles[SCREEN_NOTICE] |= (attr_t)COLOR_PAIR(2);
	styles[SCREEN_HUNG] |= (attr_t)COLOR_PAIR(1);
	for (int i = 0; i < STAGE_RESIDENCE_END; i++) {
		init_pair((short)(4 + i), stage_colours[i], -1);
		styles[SCREEN_STAGE + i] = A_BOLD | (attr_t)COLOR_PAIR(4 + i);
	}
}

/* Without keys, typed input waits for the shell: ncurses must not interrupt drawing for it. */
static void set_modes(bool keys)
{
	cbreak();
	noecho();
	nonl();
	if (keys) {
		keypad(stdscr, TRUE);
		nodelay(stdscr, TRUE);
		set_escdelay(50);
	} else {
		typeahead(-1);
	}
	curs_set(0);
}

int screen_open(FILE *out, FILE *keys)
{
	if (terminal.taken)
		return -EBUSY;
	terminal.fd = fileno(out);
	if ((keys && !isatty(fileno(keys))) || tcgetattr(terminal.fd, &terminal.termios))
		return -ENOTTY;
	setlocale(LC_CTYPE, "");
	terminal.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	terminal.screen = newterm(NULL, out, keys ? keys : out);
	if (!terminal.screen)
		return -EOPNOTSUPP;
	/* ncurses accepts TERM=dumb, but then cannot move the cursor. */
	if (!has_sequence("cup")) {
		endwin();
		delscreen(terminal.screen);
		return -EOPNOTSUPP;
	}
	catch_deadly();
	terminal.taken = true;
	atexit(screen_close);
	set_modes(keys);
	set_styles();
	return 0;
}

void screen_close(void)
{
	if (!terminal.taken)
		return;
	if (!has_sequence("rmcup")) {
		/* Without a screen to return to, leave an empty one. */
		erase();
		refresh();
	}
	endwin();
	terminal.taken = false;
	tcsetattr(terminal.fd, TCSADRAIN, &terminal.termios);
	uncatch_deadly();
	delscreen(terminal.screen);
	terminal.screen = NULL;
}

/* ---- drawing ---- */

void screen_begin(void)
{
	erase();
}

void screen_end(void)
{
	refresh();
}

void screen_resize(void)
{
	struct winsize size;

	if (!ioctl(terminal.fd, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

int screen_rows(void)
{
	return LINES;
}

int screen_columns(void)
{
	return COLS;
}

int screen_key(void)
{
	int key = getch();

	return key == ERR ? -1 : key;
}

bool screen_utf8(void)
{
	return terminal.utf8;
}

bool screen_colour(void)
{
	return terminal.colour;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Every character in use is one column wide. */
static int width_of(const char *text)
{
	int wide = 0;

	for (; *text; text++)
		wide += !continues(*text);
	return wide;
}

/* Return the substitute for the character at @text without UTF-8. */
static char plain_of(const char *text)
{
	static const struct {
		const char *utf8;
		char plain;
	} table[] = {{"µ", 'u'}, {"·", '-'}, {"…", '~'}, {"▼", 'v'}, {"▲", '^'}};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!strncmp(text, table[i].utf8, strlen(table[i].utf8)))
			return table[i].plain;
	}
	return '?';
}

static void put_character(const char *text)
{
	int length = 1;

	if (!((unsigned char)*text & 0x80)) {
		addch((chtype)(unsigned char)*text);
		return;
	}
	while (continues(text[length]))
		length++;
	if (terminal.utf8)
		addnstr(text, length);
	else
		addch((chtype)plain_of(text));
}

/* Ends a text that has no room: without it, a number cut before its unit would look whole. */
#define CUT "…"

static void put_blanks(int count)
{
	for (; count > 0; count--)
		addch(' ');
}

void screen_put(int y, int x, int width, unsigned int style, enum screen_align align,
		const char *text)
{
	int wide = width_of(text), blanks;

	if (y < 0 || y >= LINES || x < 0 || x >= COLS)
		return;
	if (width > COLS - x)
		width = COLS - x;
	blanks = wide < width ? width - wide : 0;
	move(y, x);
	attrset((int)terminal.styles[style]);
	if (align == SCREEN_RIGHT)
		put_blanks(blanks);
	for (; *text && width > 0; width--) {
		const char *next = text + 1;

		while (continues(*next))
			next++;
		put_character(width == 1 && *next ? CUT : text);
		text = next;
	}
	if (align == SCREEN_LEFT)
		put_blanks(blanks);
	attrset(A_NORMAL);
}

void screen_line(int y, int x, unsigned int style, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	screen_put(y, x, COLS - x, style, SCREEN_LEFT, text);
}
