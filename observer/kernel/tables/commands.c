// SPDX-License-Identifier: MIT
/* The protocols and commands that the kernel side knows; see commands.h. */
#include "commands.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sojourn/cleanup.h"
#include "sojourn/units.h"

#include "sojourn_bpf.skel.h"

/* After the reply to one of these a server writes what nobody asked for, or leaves out replies. */
static const char *const resp_leaving[] = {
	"SUBSCRIBE",	"PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE",
	"SUNSUBSCRIBE", "MONITOR",    "SYNC",	    "PSYNC",	   "CLIENT|REPLY",
};

/* The commands of Redis 8 and Valkey 8, and of the modules that come with them. */
static const char *const resp_commands[] = {
	"ACL",
	"APPEND",
	"ASKING",
	"AUTH",
	"BGREWRITEAOF",
	"BGSAVE",
	"BITCOUNT",
	"BITFIELD",
	"BITFIELD_RO",
	"BITOP",
	"BITPOS",
	"BLMOVE",
	"BLMPOP",
	"BLPOP",
	"BRPOP",
	"BRPOPLPUSH",
	"BZMPOP",
	"BZPOPMAX",
	"BZPOPMIN",
	"CLIENT",
	"CLUSTER",
	"COMMAND",
	"CONFIG",
	"COPY",
	"DBSIZE",
	"DEBUG",
	"DECR",
	"DECRBY",
	"DEL",
	"DELIFEQ",
	"DISCARD",
	"DUMP",
	"ECHO",
	"EVAL",
	"EVAL_RO",
	"EVALSHA",
	"EVALSHA_RO",
	"EXEC",
	"EXISTS",
	"EXPIRE",
	"EXPIREAT",
	"EXPIRETIME",
	"FAILOVER",
	"FCALL",
	"FCALL_RO",
	"FLUSHALL",
	"FLUSHDB",
	"FUNCTION",
	"GEOADD",
	"GEODIST",
	"GEOHASH",
	"GEOPOS",
	"GEORADIUS",
	"GEORADIUS_RO",
	"GEORADIUSBYMEMBER",
	"GEORADIUSBYMEMBER_RO",
	"GEOSEARCH",
	"GEOSEARCHSTORE",
	"GET",
	"GETBIT",
	"GETDEL",
	"GETEX",
	"GETRANGE",
	"GETSET",
	"HDEL",
	"HELLO",
	"HEXISTS",
	"HEXPIRE",
	"HEXPIREAT",
	"HEXPIRETIME",
	"HGET",
	"HGETALL",
	"HGETDEL",
	"HGETEX",
	"HINCRBY",
	"HINCRBYFLOAT",
	"HKEYS",
	"HLEN",
	"HMGET",
	"HMSET",
	"HPERSIST",
	"HPEXPIRE",
	"HPEXPIREAT",
	"HPEXPIRETIME",
	"HPTTL",
	"HRANDFIELD",
	"HSCAN",
	"HSET",
	"HSETEX",
	"HSETNX",
	"HSTRLEN",
	"HTTL",
	"HVALS",
	"INCR",
	"INCRBY",
	"INCRBYFLOAT",
	"INFO",
	"KEYS",
	"LASTSAVE",
	"LATENCY",
	"LCS",
	"LINDEX",
	"LINSERT",
	"LLEN",
	"LMOVE",
	"LMPOP",
	"LOLWUT",
	"LPOP",
	"LPOS",
	"LPUSH",
	"LPUSHX",
	"LRANGE",
	"LREM",
	"LSET",
	"LTRIM",
	"MEMORY",
	"MGET",
	"MIGRATE",
	"MODULE",
	"MOVE",
	"MSET",
	"MSETNX",
	"MULTI",
	"OBJECT",
	"PERSIST",
	"PEXPIRE",
	"PEXPIREAT",
	"PEXPIRETIME",
	"PFADD",
	"PFCOUNT",
	"PFDEBUG",
	"PFMERGE",
	"PFSELFTEST",
	"PING",
	"PSETEX",
	"PTTL",
	"PUBLISH",
	"PUBSUB",
	"QUIT",
	"RANDOMKEY",
	"READONLY",
	"READWRITE",
	"RENAME",
	"RENAMENX",
	"REPLCONF",
	"REPLICAOF",
	"RESET",
	"RESTORE",
	"ROLE",
	"RPOP",
	"RPOPLPUSH",
	"RPUSH",
	"RPUSHX",
	"SADD",
	"SAVE",
	"SCAN",
	"SCARD",
	"SCRIPT",
	"SDIFF",
	"SDIFFSTORE",
	"SELECT",
	"SET",
	"SETBIT",
	"SETEX",
	"SETNX",
	"SETRANGE",
	"SHUTDOWN",
	"SINTER",
	"SINTERCARD",
	"SINTERSTORE",
	"SISMEMBER",
	"SLAVEOF",
	"SLOWLOG",
	"SMEMBERS",
	"SMISMEMBER",
	"SMOVE",
	"SORT",
	"SORT_RO",
	"SPOP",
	"SPUBLISH",
	"SRANDMEMBER",
	"SREM",
	"SSCAN",
	"STRLEN",
	"SUBSTR",
	"SUNION",
	"SUNIONSTORE",
	"SWAPDB",
	"TIME",
	"TOUCH",
	"TTL",
	"TYPE",
	"UNLINK",
	"UNWATCH",
	"WAIT",
	"WAITAOF",
	"WATCH",
	"XACK",
	"XACKDEL",
	"XADD",
	"XAUTOCLAIM",
	"XCLAIM",
	"XDEL",
	"XDELEX",
	"XGROUP",
	"XINFO",
	"XLEN",
	"XPENDING",
	"XRANGE",
	"XREAD",
	"XREADGROUP",
	"XREVRANGE",
	"XSETID",
	"XTRIM",
	"ZADD",
	"ZCARD",
	"ZCOUNT",
	"ZDIFF",
	"ZDIFFSTORE",
	"ZINCRBY",
	"ZINTER",
	"ZINTERCARD",
	"ZINTERSTORE",
	"ZLEXCOUNT",
	"ZMPOP",
	"ZMSCORE",
	"ZPOPMAX",
	"ZPOPMIN",
	"ZRANDMEMBER",
	"ZRANGE",
	"ZRANGEBYLEX",
	"ZRANGEBYSCORE",
	"ZRANGESTORE",
	"ZRANK",
	"ZREM",
	"ZREMRANGEBYLEX",
	"ZREMRANGEBYRANK",
	"ZREMRANGEBYSCORE",
	"ZREVRANGE",
	"ZREVRANGEBYLEX",
	"ZREVRANGEBYSCORE",
	"ZREVRANK",
	"ZSCAN",
	"ZSCORE",
	"ZUNION",
	"ZUNIONSTORE",
	/* Modules. */
	"BF.ADD",
	"BF.EXISTS",
	"BF.MADD",
	"BF.MEXISTS",
	"BF.RESERVE",
	"CF.ADD",
	"CF.EXISTS",
	"FT.AGGREGATE",
	"FT.SEARCH",
	"JSON.DEL",
	"JSON.GET",
	"JSON.MGET",
	"JSON.SET",
	"TS.ADD",
	"TS.GET",
	"TS.MADD",
	"TS.MRANGE",
	"TS.RANGE",
	"VADD",
	"VSIM",
};

/* Requests of PostgreSQL, by how they are made. */
static const char *const postgres_kinds[] = {"simple", "extended", "copy", "login"};

/* A row per protocol: its names, the usual port, and the names of its commands. */
static const struct {
	const char *name;
	const char *also; /* another name of it */
	uint16_t port;
	const char *const *commands;
	size_t count;
	const char *const *leaving; /* these come after the others */
	size_t leaving_count;
} protocols[COMMAND_PROTOCOL_COUNT] = {
	[COMMAND_RESP] = {"redis", "valkey", 6379, resp_commands, ARRAY_SIZE(resp_commands),
			  resp_leaving, ARRAY_SIZE(resp_leaving)},
	[COMMAND_POSTGRES] = {"postgresql", "postgres", 5432, postgres_kinds,
			      ARRAY_SIZE(postgres_kinds), NULL, 0},
};

_Static_assert(ARRAY_SIZE(resp_commands) + ARRAY_SIZE(resp_leaving) + ARRAY_SIZE(postgres_kinds) <=
		       COMMANDS_MOST,
	       "the kernel side has room for the commands");

#define ALLOWED \
	"redis, valkey or postgresql, and if it is not the usual one its port, e.g. redis:6380"

static bool is_called(const char *text, size_t length, const char *name)
{
	return strlen(name) == length && !strncasecmp(text, name, length);
}

const char *commands_parse(const char *text, struct command_port *ret_port)
{
	size_t length = strcspn(text, ":");

	for (uint32_t i = COMMAND_NONE + 1; i < COMMAND_PROTOCOL_COUNT; i++) {
		uint64_t port = protocols[i].port;

		if (!is_called(text, length, protocols[i].name) &&
		    !is_called(text, length, protocols[i].also))
			continue;
		if (text[length] && units_parse_u64(text + length + 1, 1, UINT16_MAX, &port) < 0)
			return ALLOWED;
		*ret_port = (struct command_port){.port = (uint16_t)port, .protocol = (uint16_t)i};
		return NULL;
	}
	return ALLOWED;
}

const char *commands_protocol(uint16_t protocol)
{
	return protocols[protocol].name;
}

static uint32_t count_of(uint16_t protocol)
{
	return (uint32_t)(protocols[protocol].count + protocols[protocol].leaving_count);
}

/* Return the id of its first command on the kernel side, which the others follow. */
static uint32_t first_of(uint16_t protocol)
{
	uint32_t id = 0;

	for (uint16_t i = 0; i < protocol; i++)
		id += count_of(i);
	return id;
}

static const char *name_of(uint16_t protocol, uint32_t number)
{
	size_t count = protocols[protocol].count;

	return number < count ? protocols[protocol].commands[number]
			      : protocols[protocol].leaving[number - count];
}

uint16_t commands_at(const struct observer_config *config, uint16_t port)
{
	for (uint32_t i = 0; i < config->command_count; i++)
		if (config->command_ports[i].port == port)
			return config->command_ports[i].protocol;
	return COMMAND_NONE;
}

uint32_t commands_rows(uint16_t protocol, const uint64_t *places,
		       const char *ret_names[static COMMAND_ROWS])
{
	uint32_t rows = 1;

	places += first_of(protocol);
	memset(ret_names, 0, COMMAND_ROWS * sizeof(*ret_names));
	for (uint32_t i = 0; i < count_of(protocol); i++) {
		uint64_t row = __atomic_load_n(&places[i], __ATOMIC_RELAXED);

		if (row && row < COMMAND_ROWS)
			ret_names[row] = name_of(protocol, i);
	}
	/* A row that is about to get its command comes with the next reading. */
	while (rows < COMMAND_ROWS && ret_names[rows])
		rows++;
	return rows;
}

static int fill(int fd, uint16_t protocol)
{
	for (uint32_t i = 0; i < count_of(protocol); i++) {
		struct command_known known = {
			.id = first_of(protocol) + i,
			.protocol = protocol,
			.leaves = i >= protocols[protocol].count,
		};
		struct command_name name = {};
		const char *text = name_of(protocol, i);

		memcpy(name.text, text, strlen(text));
		if (bpf_map_update_elem(fd, &name, &known, BPF_ANY))
			return -errno;
	}
	return 0;
}

int commands_fill(const struct sojourn_bpf *skel)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < COMMAND_PROTOCOL_COUNT; i++)
		r = fill(bpf_map__fd(skel->maps.command_names), (uint16_t)i);
	return r;
}
