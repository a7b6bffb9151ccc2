// SPDX-License-Identifier: MIT
/* The terminal through ncurses, and its way back; see screen.h. */
#include "screen.h"

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

/* What nobody survives: there the terminal is given back by what a signal handler may do. */
static const int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGSYS, SIGTRAP};

static struct {
	bool taken;
	bool utf8;
	SCREEN *screen;
	struct termios termios; /* as it was */
	char leave[256];	/* sequences that undo what entering did */
	size_t leave_length;
	attr_t styles[LIVE_STYLES];
	struct sigaction actions[ARRAY_SIZE(deadly)];
	char *stack;
} terminal;

/* ---- a crash ---- */

/* SA_RESETHAND: the signal then does what it always does, a core dump included. */
static void on_deadly(int number)
{
	if (terminal.taken) {
		/* Only what signal-safety(7) lists. */
		ssize_t n = write(STDOUT_FILENO, terminal.leave, terminal.leave_length);

		(void)n;
		terminal.taken = false;
		tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.termios);
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

	if (terminal.leave_length + length > sizeof(terminal.leave))
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

/* ---- taking it ---- */

static void set_styles(void)
{
	static const short stage_colours[STAGE_RESIDENCE_END] = {
		COLOR_MAGENTA, COLOR_RED, COLOR_CYAN, COLOR_GREEN, COLOR_BLUE};
	const char *no = getenv("NO_COLOR");
	attr_t *styles = terminal.styles;

	styles[LIVE_PLAIN] = A_NORMAL;
	styles[LIVE_BOLD] = A_BOLD;
	styles[LIVE_DIM] = A_DIM;
	styles[LIVE_TITLE] = A_REVERSE;
	styles[LIVE_ALARM] = A_BOLD;
	styles[LIVE_NOTICE] = A_NORMAL;
	styles[LIVE_HUNG] = A_BOLD | A_REVERSE;
	for (int i = 0; i < STAGE_COUNT; i++)
		styles[LIVE_STAGE + i] = A_NORMAL;
	if ((no && *no) || !has_colors() || start_color() != OK || use_default_colors() != OK)
		return;
	init_pair(1, COLOR_RED, -1);
	init_pair(2, COLOR_YELLOW, -1);
	styles[LIVE_ALARM] |= (attr_t)COLOR_PAIR(1);
	styles[LIVE_NOTICE] |= (attr_t)COLOR_PAIR(2);
	styles[LIVE_HUNG] |= (attr_t)COLOR_PAIR(1);
	for (int i = 0; i < STAGE_RESIDENCE_END; i++) {
		init_pair((short)(3 + i), stage_colours[i], -1);
		styles[LIVE_STAGE + i] = A_BOLD | (attr_t)COLOR_PAIR(3 + i);
	}
}

static void set_modes(void)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
}

int live_screen_open(void)
{
	if (terminal.taken)
		return -EBUSY;
	if (!isatty(STDIN_FILENO) || tcgetattr(STDOUT_FILENO, &terminal.termios))
		return -ENOTTY;
	setlocale(LC_CTYPE, "");
	terminal.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	terminal.screen = newterm(NULL, stdout, stdin);
	if (!terminal.screen)
		return -EOPNOTSUPP;
	/* TERM=dumb: ncurses takes it, and then cannot move the cursor. */
	if (!has_sequence("cup")) {
		endwin();
		delscreen(terminal.screen);
		return -EOPNOTSUPP;
	}
	catch_deadly();
	terminal.taken = true;
	atexit(live_screen_close);
	set_modes();
	set_styles();
	return 0;
}

void live_screen_close(void)
{
	if (!terminal.taken)
		return;
	if (!has_sequence("rmcup")) {
		/* No screen to go back to: an empty one then. */
		erase();
		refresh();
	}
	endwin();
	terminal.taken = false;
	tcsetattr(STDOUT_FILENO, TCSADRAIN, &terminal.termios);
	uncatch_deadly();
	delscreen(terminal.screen);
	terminal.screen = NULL;
}

/* ---- drawing ---- */

void live_screen_begin(void)
{
	erase();
}

void live_screen_end(void)
{
	refresh();
}

void live_screen_resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

int live_screen_rows(void)
{
	return LINES;
}

int live_screen_columns(void)
{
	return COLS;
}

int live_screen_key(void)
{
	int key = getch();

	return key == ERR ? -1 : key;
}

bool live_screen_utf8(void)
{
	return terminal.utf8;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Every character that we write is one column wide. */
static int width_of(const char *text)
{
	int wide = 0;

	for (; *text; text++)
		wide += !continues(*text);
	return wide;
}

/* What a terminal without UTF-8 shows instead of the character at @text. */
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

static void put_blanks(int count)
{
	for (; count > 0; count--)
		addch(' ');
}

void live_put(int y, int x, int width, unsigned int style, enum live_align align, const char *text)
{
	int wide = width_of(text), blanks;

	if (y < 0 || y >= LINES || x < 0 || x >= COLS)
		return;
	if (width > COLS - x)
		width = COLS - x;
	blanks = wide < width ? width - wide : 0;
	move(y, x);
	attrset((int)terminal.styles[style]);
	if (align == LIVE_RIGHT)
		put_blanks(blanks);
	for (; *text && width > 0; width--) {
		put_character(text);
		do
			text++;
		while (continues(*text));
	}
	if (align == LIVE_LEFT)
		put_blanks(blanks);
	attrset(A_NORMAL);
}

void live_line(int y, int x, unsigned int style, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	live_put(y, x, COLS - x, style, LIVE_LEFT, text);
}
