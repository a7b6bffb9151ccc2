// SPDX-License-Identifier: MIT
/*
 * The options of `fleet` and `agent`; see fleet_options.h. driver/options/ has the options of the
 * run itself.
 */
#include "fleet_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/channel/relay.h"
#include "options/rows.h"
#include "sojourn/cleanup.h"
#include "sojourn/cli.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

#define LOST_AFTER_NS	  (5 * NSEC_PER_SEC)
#define LOST_AFTER_MIN_NS NSEC_PER_SEC /* an agent sends two beats a second */

#define GATHER_MIN_NS	(100 * NSEC_PER_MSEC)
#define CREDENTIALS_MAX (64U << 10)

#define FLEET_AT(member) CLI_AT(struct fleet_options, member)
#define AGENT_AT(member) CLI_AT(struct agent_options, member)

#define NATS_AT(member) CLI_AT(struct nats_settings, member)

#define HOST_MARK "{host}"

static const char *const on_loss_names[] = {"stop", "continue"};

/* ---- lists of words ---- */

static int split(const char *text, const char *separators, char ***ret_words, size_t *ret_count)
{
	int err = 0;

	run_strings_free(TAKE_PTR(*ret_words));
	*ret_count = 0;
	while (!err && *text) {
		size_t length = strcspn(text, separators);
		autofree char *word = strndup(text, length);

		if (length)
			err = word ? run_add_text(ret_words, word) : -ENOMEM;
		*ret_count += length && !err;
		text += length + (text[length] != '\0');
	}
	return err;
}

/* ---- rows ---- */

/* A URL shows in the list of processes. */
static int apply_url(struct nats_settings *nats, const char *option, const char *value,
		     char **ret_error)
{
	autofree char *wrong = NULL;
	int err;

	if (strchr(value, '@'))
		return refuse(ret_error,
			      "%s: others can see a login in the URL; write USER:PASSWORD into a "
			      "file, and name that by --credentials",
			      option);
	err = nats_settings_parse(nats, value, &wrong);
	return err && wrong ? refuse(ret_error, "%s: '%s' %s", option, value, wrong) : err;
}

/* Also "nats:HOST", which is a mistake. */
static bool is_url(const char *via)
{
	return strstr(via, "://") || !strncmp(via, "nats:", 5) || !strncmp(via, "tls:", 4);
}

static int apply_via(void *target, const char *value, char **ret_error)
{
	struct fleet_options *options = target;
	bool url = is_url(value);
	int err = split(url ? "" : value, " \t", &options->via, &options->via_count);

	if (!err && url)
		return apply_url(&options->nats, "--via", value, ret_error);
	free(TAKE_PTR(options->nats.url));
	if (err || options->via_count)
		return err;
	return refuse(ret_error,
		      "--via: '%s' is no command; write it like 'ssh {host}', or nats://HOST",
		      value);
}

static int check_hosts(const struct fleet_options *options, char **ret_error)
{
	if (!options->host_count)
		return refuse(ret_error, "--hosts: '' names none; write them like a,b,c");
	if (options->host_count > FLEET_HOSTS_MAX)
		return refuse(ret_error, "--hosts: %zu are given, up to %u are possible",
			      options->host_count, FLEET_HOSTS_MAX);
	for (size_t i = 0; i < options->host_count; i++) {
		if (*options->hosts[i] == '-')
			return refuse(ret_error, "--hosts: '%s' is no host, but an option",
				      options->hosts[i]);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(options->hosts[i], options->hosts[j]))
				return refuse(ret_error,
					      "--hosts: '%s' is given twice; --threads uses more "
					      "of one host",
					      options->hosts[i]);
	}
	return 0;
}

static int apply_hosts(void *target, const char *value, char **ret_error)
{
	struct fleet_options *options = target;
	int err = split(value, ", \t", &options->hosts, &options->host_count);

	return err ? err : check_hosts(options, ret_error);
}

static int apply_allow(void *target, const char *value, char **ret_error)
{
	struct agent_options *options = target;

	options->ceilings.allow = value;
	return ceilings_check_list("--allow", value, ret_error);
}

static int apply_sees(void *target, const char *value, char **ret_error)
{
	((struct agent_options *)target)->sees = value;
	return ceilings_check_list("--sees", value, ret_error);
}

static int apply_fleet(void *target, const char *value, char **ret_error)
{
	return apply_url(&((struct agent_options *)target)->nats, "--fleet", value, ret_error);
}

static const char *set_name(void *name, const char *value)
{
	if (!relay_is_name(value))
		return "is no name; up to 64 letters, digits, '.', '_' and '-' are allowed";
	*(const char **)name = value;
	return NULL;
}

static int read_login(const char *option, const char *value, struct nats_login *login,
		      char **ret_error)
{
	autofree char *text = NULL, *wrong = NULL;
	size_t length;
	int err = option_read_file(option, value, CREDENTIALS_MAX, &text, &length, ret_error);

	if (err)
		return err;
	nats_login_clear(login);
	err = nats_login_parse(text, length, login, &wrong);
	explicit_bzero(text, length);
	return err && wrong
		       ? refuse(ret_error, "--%s: '%s' cannot be used: %s", option, value, wrong)
		       : err;
}

static int apply_credentials(void *login, const char *value, char **ret_error)
{
	return read_login("credentials", value, login, ret_error);
}

/* clang-format off */
static const struct cli_option fleet_rows[] = {
	{"hosts", 0, "HOST[,HOST]", "the members, each once", CLI_APPLY, .apply = apply_hosts},
	{"via", 0, "COMMAND|URL",
	 "command that reaches a host, with {host} for its name; split at spaces, without a shell (default: 'ssh {host}'). "
	 "Or nats://HOST[:PORT], tls://HOST[:PORT]: the server at which agents wait",
	 CLI_APPLY, .apply = apply_via},
	{"members", 0, "N", "over NATS, take N agents of those that wait", CLI_NUMBER, FLEET_AT(members), .minimum = 1,
	 .maximum = FLEET_HOSTS_MAX},
	{"gather", 0, "TIME", "over NATS, wait so long for N agents (default 5s)", CLI_DURATION, FLEET_AT(gather_ns),
	 .minimum = GATHER_MIN_NS, .allowed = "is no duration of 100ms or more; write it like 5s"},
	{"agent-program", 0, "PROGRAM", "the driver on the hosts (default: sojourn-drive)", CLI_TEXT,
	 FLEET_AT(agent_program), .minimum = 1, .allowed = "the program's name is empty"},
	{"on-loss", 0, "stop|continue",
	 "when a member is lost, end the run of the others (default), or let them go on, with its part of the rate", CLI_WORD, FLEET_AT(on_loss),
	 .words = on_loss_names, .maximum = 2, .allowed = "is not known; use stop or continue"},
	{"lost-after", 0, "TIME",
	 "give up a member that sends nothing for TIME; one\nthat receives nothing for TIME ends (default 5s)", CLI_DURATION,
	 FLEET_AT(lost_after_ns), .minimum = LOST_AFTER_MIN_NS, .allowed = "is no duration of 1s or more; write it like 5s"},
	{"help", 'h', NULL, "print this help", CLI_FLAG, FLEET_AT(help)},
};

static const struct cli_option agent_rows[] = {
	{"allow", 0, "TARGET[,TARGET]",
	 "load only these: networks like 10.0.0.0/8, or\nhosts with or without a port", CLI_APPLY,
	 .apply = apply_allow},
	{"max-rate", 0, "N", "at most N requests per second, and no closed loop", CLI_COUNT,
	 AGENT_AT(ceilings.rate), .minimum = 1, .allowed = "is not a count; write it like 500 or 20k"},
	{"max-connections", 0, "N", "at most N connections, to all targets together", CLI_NUMBER, AGENT_AT(ceilings.connections),
	 .minimum = 1, .maximum = 1000000},
	{"max-duration", 0, "TIME", "at most for TIME, with warm-up and cool-down, and no run without --duration", CLI_DURATION,
	 AGENT_AT(ceilings.duration_ns), .minimum = NSEC_PER_MSEC},
};

static const struct cli_option waiting_rows[] = {
	{"fleet", 0, "URL", "wait for plans at a NATS server, nats://HOST[:PORT] or tls://HOST[:PORT], one after the other",
	 CLI_APPLY, .apply = apply_fleet},
	{"name", 0, "NAME", "name of this member in reports (default: the host's)", CLI_SET, AGENT_AT(name), .set = set_name},
	{"once", 0, NULL, "end after one run", CLI_FLAG, AGENT_AT(once)},
	{"help", 'h', NULL, "print this help", CLI_FLAG, AGENT_AT(help)},
};

static const struct cli_option beside_rows[] = {
	{"observer", 0, "URL",
	 "with --fleet: carry no load, but pass runs' phases on to the observer at URL "
	 "(sojourn serve; 9180, http://127.0.0.1:9180 or https:), if it sees their targets",
	 CLI_APPLY, AGENT_AT(observers), .apply = option_apply_observer},
	{"observer-token-file", 0, "FILE",
	 "show it the bearer token that is FILE's first line (default: that in SOJOURN_OBSERVER_TOKEN, if any)",
	 CLI_APPLY, AGENT_AT(observers), .apply = option_apply_observer_token},
	{"observer-ca", 0, "FILE", "its certificate must come from an authority in FILE (PEM)", CLI_APPLY,
	 AGENT_AT(observers.ca_path), .apply = option_apply_observer_ca},
	{"sees", 0, "TARGET[,TARGET]",
	 "targets that it sees beside those at addresses of this host: of pods, or of a balancer before them; as in --allow",
	 CLI_APPLY, .apply = apply_sees},
};

static const struct cli_option nats_rows[] = {
	{"credentials", 0, "FILE",
	 "show the NATS server the login in FILE: an nkey's seed, a .creds file, USER:PASSWORD, or a token", CLI_APPLY,
	 NATS_AT(login), .apply = apply_credentials},
	{"ca", 0, "FILE", "trust the certificates of FILE, in PEM (default: the\nsystem's)", CLI_TEXT, NATS_AT(tls.ca_path),
	 .minimum = 1, .allowed = "the file's name is empty"},
	{"cert", 0, "FILE", "show this certificate, in PEM", CLI_TEXT, NATS_AT(tls.cert_path), .minimum = 1,
	 .allowed = "the file's name is empty"},
	{"key", 0, "FILE", "its key, if it is in a file of its own", CLI_TEXT, NATS_AT(tls.key_path), .minimum = 1,
	 .allowed = "the file's name is empty"},
};
/* clang-format on */

static const struct cli_table fleet_table = {"Fleet", fleet_rows, ARRAY_SIZE(fleet_rows), 0};
static const struct cli_table fleet_nats_table = {"NATS", nats_rows, ARRAY_SIZE(nats_rows),
						  offsetof(struct fleet_options, nats)};
static const struct cli_table agent_table = {"Ceilings", agent_rows, ARRAY_SIZE(agent_rows), 0};
static const struct cli_table waiting_table = {"Waiting", waiting_rows, ARRAY_SIZE(waiting_rows),
					       0};
static const struct cli_table beside_table = {"Beside an observer", beside_rows,
					      ARRAY_SIZE(beside_rows), 0};
static const struct cli_table agent_nats_table = {"NATS", nats_rows, ARRAY_SIZE(nats_rows),
						  offsetof(struct agent_options, nats)};
static const struct cli_command fleet_command = {.tables = {&fleet_table, &fleet_nats_table},
						 .getopt = true};
static const struct cli_command agent_command = {
	.tables = {&agent_table, &waiting_table, &beside_table, &agent_nats_table}, .getopt = true};

const char *fleet_options_find(char *const *words)
{
	for (; *words; words++)
		if (!strncmp(*words, "--", 2) &&
		    cli_row(&fleet_command, *words + 2, strcspn(*words + 2, "=")))
			return *words;
	return NULL;
}

void fleet_options_help(FILE *file)
{
	fputs("Usage: sojourn-drive fleet --hosts HOST[,HOST]... [OPTION]... -- URL [OPTION]...\n"
	      "       sojourn-drive fleet --via nats://HOST --members N [OPTION]... -- URL ...\n"
	      "       sojourn-drive fleet ... -- sweep [OPTION]... URL...\n"
	      "       sojourn-drive fleet ... -- run FILE.yaml [OPTION]... [URL]\n"
	      "       sojourn-drive fleet resume ID --via nats://HOST [OPTION]...\n"
	      "Carry out one run by the drivers of several hosts: divided between them, started\n"
	      "together, ended together, with one report. The words after -- are as without "
	      "fleet.\n"
	      "Connections, requests and the rate are those of the whole run, threads those of\n"
	      "each member. Each step of a sweep is one run of all hosts.\n"
	      "resume takes up a run over NATS whose coordinator was killed: it waits for the\n"
	      "members, which measure the rest of a sweep, and reports as the run itself would\n"
	      "have done. Needs JetStream.\n",
	      file);
	cli_help_tables(&fleet_command, file);
	fputs("\n"
	      "Exit status: as without fleet; also 1 if a member could not start or was lost.\n"
	      "\n"
	      "Examples:\n"
	      "  $ sojourn-drive fleet --via 'sh -c' --hosts one,two -- 127.0.0.1:8080 -c 8\n"
	      "  $ sojourn-drive fleet --hosts a,b,c -- http://server:8080/ -c 300 -d 60s\n"
	      "  $ sojourn-drive fleet --via 'srun -w {host}' --hosts n1,n2 -- http://server/\n"
	      "  $ sojourn-drive fleet --via nats://nats-host --members 8 -- http://server/\n",
	      file);
}

void agent_options_help(FILE *file)
{
	fputs("Usage: sojourn-drive agent [OPTION]...\n"
	      "Be one member of a fleet: sojourn-drive fleet starts it on each host and speaks to\n"
	      "it over standard input and output. With --fleet it waits at a NATS server instead,\n"
	      "for one run after the other. It refuses a plan above its ceilings. With --max-rate\n"
	      "or --max-connections, one agent of a user runs at a time. With --observer it\n"
	      "carries no load: it passes runs on to the observer of its host.\n",
	      file);
	cli_help_tables(&agent_command, file);
	fputs("\n"
	      "Examples:\n"
	      "  In authorized_keys of sshd, a key that can do nothing else:\n"
	      "  command=\"sojourn-drive agent --allow 10.0.0.0/8 --max-rate 5k\" ssh-ed25519 "
	      "...\n"
	      "  Wait for runs that anybody at the NATS server may start, within the ceilings:\n"
	      "  $ sojourn-drive agent --fleet nats://nats-host --allow 10.0.0.0/8 --max-rate 5k\n"
	      "  Let runs with --observer fleet find the observer of this host:\n"
	      "  $ sojourn-drive agent --fleet nats://nats-host --observer 9180\n",
	      file);
}

/* ---- command lines ---- */

/* Take "resume ID" from the words. */
static int take_resume(struct cli_words *words, struct fleet_options *options, char **ret_error)
{
	if (!words->count || strcmp(words->list[0], "resume") != 0)
		return 0;
	if (words->count < 2)
		return refuse(ret_error, "resume: the run's secret is missing; its coordinator has "
					 "printed it at the start");
	if (words->count > 2)
		return refuse(ret_error,
			      "resume: '%s' follows the run's secret; one run at a time can "
			      "be resumed",
			      words->list[2]);
	if (!relay_is_key(words->list[1]))
		return refuse(ret_error,
			      "resume: '%s' is no run's secret, which has 32 of the "
			      "characters 0-9 and a-f",
			      words->list[1]);
	options->resume = words->list[1];
	words->count = 0;
	return 0;
}

static int parse(const struct cli_command *command, int argc, char **argv, void *target,
		 char **ret_error)
{
	autofree char **list = calloc((size_t)argc + 1, sizeof(*list));
	struct cli_words words = {.list = list};
	int err = list ? cli_walk(command, argc, argv, target, &words, ret_error) : -ENOMEM;

	if (!err && command == &fleet_command)
		err = take_resume(&words, target, ret_error);
	if (!err && words.count)
		return refuse(ret_error, "'%s' is no option of %s; --help lists them%s",
			      words.list[0], argv[0],
			      command == &fleet_command ? ". The members' URL and options follow --"
							: "");
	return err;
}

static int find_rest(int argc, char **argv)
{
	int at = 1;

	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	return at;
}

/*
 * Certificates for a connection that may be in plain text would only look like safety. @prefix: of the
 * options.
 */
static int check_certificates(const struct nats_settings *nats, const char *prefix,
			      char **ret_error)
{
	const char *given = tls_option_given(&nats->tls);

	if (given && !nats->secure)
		return refuse(ret_error, "--%s%s: '%s' may be without TLS; write tls://%s:%u",
			      prefix, given + 2, nats->url, nats->host, nats->port);
	if (nats->tls.key_path && !nats->tls.cert_path)
		return refuse(ret_error,
			      "--%skey: there is no certificate for it; add --%scert FILE", prefix,
			      prefix);
	return 0;
}

static int check_nats(const struct nats_settings *nats, const char *option, char **ret_error)
{
	const struct nats_login *login = &nats->login;
	const char *given = login->user || login->token || login->seed
				    ? "--credentials"
				    : tls_option_given(&nats->tls);

	if (!nats->url && given)
		return refuse(ret_error, "%s: there is no NATS server; add %s nats://HOST", given,
			      option);
	return check_certificates(nats, "", ret_error);
}

static int settle_hosts(struct fleet_options *options, char **ret_error)
{
	if (options->members || options->gather_ns)
		return refuse(ret_error,
			      "--%s: agents wait at a NATS server; add --via nats://HOST",
			      options->members ? "members" : "gather");
	if (!options->host_count)
		return refuse(ret_error, "--hosts: none are given; write e.g. sojourn-drive fleet "
					 "--hosts a,b,c -- http://server:8080/");
	options->members = (uint32_t)options->host_count;
	if (!options->agent_program)
		options->agent_program = "sojourn-drive";
	return options->via_count ? 0 : apply_via(options, "ssh " HOST_MARK, ret_error);
}

static int settle_waiting(struct fleet_options *options, char **ret_error)
{
	if (options->host_count || options->agent_program)
		return refuse(ret_error,
			      "--%s: over NATS, agents are there before the run; write --members N",
			      options->host_count ? "hosts" : "agent-program");
	if (!options->members)
		return refuse(ret_error, "--members: how many agents to take is missing; write "
					 "e.g. --members 4");
	if (!options->gather_ns)
		options->gather_ns = FLEET_GATHER_NS;
	return 0;
}

/* The run has its command line, and its members. */
static int settle_resume(const struct fleet_options *options, bool has_rest, char **ret_error)
{
	const char *given = options->host_count	     ? "hosts"
			    : options->members	     ? "members"
			    : options->gather_ns     ? "gather"
			    : options->agent_program ? "agent-program"
			    : options->lost_after_ns ? "lost-after"
						     : NULL;

	if (!options->nats.url)
		return refuse(ret_error,
			      "resume: the server that has the run's results is missing; "
			      "add --via nats://HOST");
	if (given)
		return refuse(ret_error, "--%s: a run that is resumed has its own; leave it out",
			      given);
	if (has_rest)
		return refuse(ret_error, "resume: the command line of the run is stored with it; "
					 "leave out -- and what follows");
	return 0;
}

static int settle(struct fleet_options *options, bool has_rest, char **ret_error)
{
	int err = check_nats(&options->nats, "--via", ret_error);

	if (!err && options->resume)
		return settle_resume(options, has_rest, ret_error);
	if (!options->lost_after_ns)
		options->lost_after_ns = LOST_AFTER_NS;
	if (!err)
		err = options->nats.url ? settle_waiting(options, ret_error)
					: settle_hosts(options, ret_error);
	if (err)
		return err;
	if (!has_rest)
		return refuse(
			ret_error,
			"fleet: the members' URL is missing; write it after --: sojourn-drive "
			"fleet --hosts a,b,c -- http://server:8080/");
	return 0;
}

int fleet_options_parse(int argc, char **argv, struct fleet_options *ret_options, int *ret_rest,
			char **ret_error)
{
	struct fleet_options options = {0};
	int rest = find_rest(argc, argv);
	int err = parse(&fleet_command, rest, argv, &options, ret_error);

	if (!err && !options.help)
		err = settle(&options, rest < argc, ret_error);
	if (err) {
		fleet_options_clear(&options);
		return err;
	}
	*ret_rest = rest;
	*ret_options = options;
	return 0;
}

void fleet_options_clear(struct fleet_options *options)
{
	run_strings_free(options->via);
	run_strings_free(options->hosts);
	nats_settings_clear(&options->nats);
	*options = (struct fleet_options){0};
}

/* An agent beside an observer carries no load, so no ceiling of load is for it. */
static int settle_beside(struct agent_options *options, char **ret_error)
{
	const struct ceilings *ceilings = &options->ceilings;
	const char *given = ceilings->rate	    ? "max-rate"
			    : ceilings->connections ? "max-connections"
			    : ceilings->duration_ns ? "max-duration"
			    : options->once	    ? "once"
						    : NULL;

	if (!options->observers.url_count)
		return options->sees ? refuse(ret_error, "--sees: it is for agents beside an "
							 "observer; add --observer 9180")
				     : option_settle_access(&options->observers, ret_error);
	if (given)
		return refuse(ret_error,
			      "--%s: an agent with --observer carries no load; leave it out, and "
			      "start another agent for load",
			      given);
	if (options->observers.url_count > 1)
		return refuse(ret_error,
			      "--observer: '%s' is a second one; start an agent for each",
			      options->observers.urls[1]);
	if (!options->nats.url)
		return refuse(ret_error, "--observer: there is no NATS server, at which runs find "
					 "it; add --fleet nats://HOST");
	return option_settle_access(&options->observers, ret_error);
}

int agent_options_parse(int argc, char **argv, struct agent_options *ret_options, char **ret_error)
{
	struct agent_options options = {0};
	int err = parse(&agent_command, argc, argv, &options, ret_error);

	if (!err && !options.help)
		err = check_nats(&options.nats, "--fleet", ret_error);
	if (!err && !options.help && options.observers.fleet)
		err = refuse(ret_error,
			     "--observer: '%s' is no observer's address; give the observer of this "
			     "host, "
			     "like 9180 or http://127.0.0.1:9180",
			     options.observers.fleet);
	if (!err && !options.help)
		err = settle_beside(&options, ret_error);
	if (!err && !options.help && !options.nats.url && (options.once || options.name))
		err = refuse(ret_error, "--%s: it is for agents that wait; add --fleet nats://HOST",
			     options.once ? "once" : "name");
	if (err)
		agent_options_clear(&options);
	else
		*ret_options = options;
	return err;
}

void agent_options_clear(struct agent_options *options)
{
	nats_settings_clear(&options->nats);
	option_clear_observers(&options->observers);
	*options = (struct agent_options){0};
}

/* Of certificates, those of --observer-… are meant. */
int fleet_options_observers(const struct observer_access *access, struct nats_settings *ret_nats,
			    char **ret_error)
{
	struct nats_settings nats = {.tls = {.ca_path = access->ca_path,
					     .cert_path = access->cert_path,
					     .key_path = access->key_path}};
	int err = apply_url(&nats, "--observer", access->fleet, ret_error);

	if (!err && access->credentials_path)
		err = read_login("observer-credentials", access->credentials_path, &nats.login,
				 ret_error);
	if (!err)
		err = check_certificates(&nats, "observer-", ret_error);
	if (err)
		nats_settings_clear(&nats);
	else
		*ret_nats = nats;
	return err;
}

/* ---- the command of a member ---- */

static char *with_host(const char *word, const char *host)
{
	const char *mark = strstr(word, HOST_MARK);

	if (!mark)
		return strdup(word);
	return text_format("%.*s%s%s", (int)(mark - word), word, host, mark + strlen(HOST_MARK));
}

bool fleet_options_names_host(const struct fleet_options *options)
{
	for (size_t i = 0; i < options->via_count; i++)
		if (strstr(options->via[i], HOST_MARK))
			return true;
	return false;
}

char **fleet_options_command(const struct fleet_options *options, const char *host)
{
	/* A shell takes its command as one word: sh -c 'sojourn-drive agent'. */
	bool shell = !strcmp(options->via[options->via_count - 1], "-c");
	autofree char *whole = text_format("exec %s agent", options->agent_program);
	char **words = NULL;
	int err = whole ? 0 : -ENOMEM;

	for (size_t i = 0; i < options->via_count && !err; i++) {
		autofree char *word = with_host(options->via[i], host);

		err = word ? run_add_text(&words, word) : -ENOMEM;
	}
	if (!err)
		err = run_add_text(&words, shell ? whole : options->agent_program);
	if (!err && !shell)
		err = run_add_text(&words, "agent");
	if (err)
		run_strings_free(TAKE_PTR(words));
	return words;
}
