package redisstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/job"
)

// Role is what a user of Redis is for.
type Role string

// The roles.
const (
	// RoleWorker runs jobs, and may do whatever else Weir can do in its namespace.
	RoleWorker Role = "worker"
	// RoleReader looks at jobs and changes nothing.
	RoleReader Role = "reader"
)

// What the store, its scripts, asynq and redislock need, with arguments for a dry run. K
// stands for a key, C for a channel.
var (
	reading = []string{
		"ping", "time", "eval x 1 K", "evalsha x 1 K", "multi", "exec",
		"get K", "mget K", "getrange K 0 1", "exists K", "pttl K",
		"hget K f", "hmget K f", "hgetall K", "hexists K f", "hkeys K", "hvals K", "hlen K", "hstrlen K f", "hscan K 0",
		"llen K", "lrange K 0 1",
		"smembers K", "scard K", "sismember K v",
		"zscore K v", "zcard K", "zcount K 0 1", "zlexcount K - +", "zrange K 0 1", "zrangebyscore K 0 1", "zrangebylex K - +", "zrevrangebylex K + -",
		"xlen K",
		"subscribe C",
	}
	writing = []string{
		"set K v", "setnx K v", "setex K 1 v", "incr K", "mset K v", "msetnx K v",
		"del K", "unlink K", "expire K 1", "expireat K 1", "pexpire K 1",
		"hset K f v", "hsetnx K f v", "hdel K f", "hincrby K f 1",
		"lpush K v", "rpush K v", "lpop K", "rpop K", "lset K 0 v", "ltrim K 0 1", "lrem K 0 v", "rpoplpush K K",
		"sadd K v", "srem K v", "spop K 1", "sunionstore K K",
		"zadd K 1 v", "zrem K v", "zremrangebyscore K 0 1", "zremrangebyrank K 0 1",
		"xadd K * f v", "xrange K - +", "xdel K 0-1",
		"publish C v",
	}
)

// lookers are those that only people who look need. What some checks of Examine use
// besides, CONFIG GET and SCAN, tells of secrets and of other namespaces.
var lookers = []string{"info", "dbsize", "memory|usage K"}

// functionLoad is the permission to give the server the scripts as one function.
const functionLoad = "+function|load"

// ACL says which rules a user of Redis needs for a role.
type ACL struct {
	Role Role
	// Functions lets a worker load the scripts as a function, which makes commits faster.
	// A user who may load functions may replace those of others, whatever their namespace.
	Functions bool
	// WorkKit are the names of schedules of WorkKit, whose keys the user needs, too. Each worker of a namespace that serves
	// one needs them.
	WorkKit []string
}

// Rules returns the rules, as ACL SETUSER takes them, for the namespace and the kind of
// Redis of a Config. They take everything else away from the user, but leave its
// passwords and whether it is on. The error wraps job.ErrConfig.
func (a ACL) Rules(cfg Config) ([]string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if a.Role != RoleWorker && a.Role != RoleReader {
		return nil, fmt.Errorf("%w: unknown role %.80q of a user; use %s or %s", job.ErrConfig, a.Role, RoleWorker, RoleReader)
	}
	if a.Functions && a.Role != RoleWorker {
		return nil, fmt.Errorf("%w: only a %s may load functions", job.ErrConfig, RoleWorker)
	}
	if cfg.URL == "" {
		return nil, fmt.Errorf("%w: the embedded Redis has no other users; give a URL", job.ErrConfig)
	}
	t, err := redisconn.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	rules := []string{"resetkeys", "resetchannels", "-@all"}
	rules = append(rules, a.patterns(cfg.namespace())...)
	for _, name := range a.WorkKit {
		if err := checkKitName(name); err != nil {
			return nil, err
		}
		for _, what := range []string{"jobs", "next"} {
			rules = append(rules, a.reach()+name+":"+what)
		}
	}
	for _, line := range a.commands() {
		name, _, _ := strings.Cut(line, " ")
		rules = append(rules, "+"+name)
	}
	rules = append(rules, "+fcall")
	if a.Functions {
		rules = append(rules, functionLoad)
	}
	return append(rules, t.Commands()...), nil
}

// reach is what begins the rule for a key that the role may use.
func (a ACL) reach() string {
	if a.Role == RoleReader {
		return "%R~"
	}
	return "~"
}

// commands are those that a role needs, with arguments.
func (a ACL) commands() []string {
	all := slices.Concat(reading, lookers)
	if a.Role == RoleWorker {
		all = append(all, writing...)
	}
	return all
}

// patterns are the keys and channels of a namespace. What belongs to no namespace is
// asynq's: which queues, servers and busy workers there are.
func (a ACL) patterns(namespace string) []string {
	own := []string{
		"~weir:{" + namespace + "}:*", "~weir:{" + namespace + ":*", "~asynq:{weir:" + namespace + ":*",
		"&weir:{" + namespace + "}:*",
	}
	if a.Role == RoleReader {
		return append(own, "%R~asynq:queues")
	}
	return append(own, "~asynq:queues", "~asynq:servers", "~asynq:servers:{*", "~asynq:workers", "~asynq:workers:{*", "&asynq:cancel")
}
