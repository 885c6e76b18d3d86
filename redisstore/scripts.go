package redisstore

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/mutation"
	"github.com/weirworks/weir/statemachine"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// libraries are what the scripts share, each with those before it.
var libraries = []string{"base", "compact", "news", "ready", "retain", "kin", "mail", "serial", "edge", "log", "port", "quiesce", "rate", "repeats", "place", "limited", "amend", "plan", "unique", "run", "compact_run", "compact_end", "several", "subtree", "hub", "delta", "record", "tx", "plain"}

// The scripts of the store. Each is the state machine's tables, the libraries up to the
// one named last that it needs, and its file.
var (
	scriptBegin           = script("begin", "compact_run").freeing()
	scriptCommit          = script("commit", "plain").freeing()
	scriptCreate          = script("create", "compact_run")
	scriptPart            = script("create_part", "compact_run")
	scriptCompact         = script("create_compact", "compact_run")
	scriptArrive          = script("journal_create", "compact_run")
	scriptReserve         = script("tree_reserve", "mail")
	scriptPurge           = script("tree_purge", "mail").freeing()
	scriptWalk            = script("tree_walk", "mail").freeing()
	scriptRecord          = script("record_read", "mail").freeing()
	scriptRefresh         = script("run_refresh", "mail").freeing()
	scriptApply           = script("job_apply", "subtree")
	scriptRetry           = script("job_retry", "amend")
	scriptFail            = script("job_fail", "amend")
	scriptMerge           = script("args_merge", "amend")
	scriptTimer           = script("job_alarm", "mail")
	scriptAdopt           = script("job_adopt", "quiesce")
	scriptDelete          = script("job_delete", "subtree", "part").freeing()
	scriptBackgroundTasks = script("chore_run", "hub", "closing").freeing()
	scriptExpire          = script("tree_expire", "subtree", "part", "expire").freeing()
	scriptPatch           = script("graph_patch", "subtree", "patch", "closing")
	scriptState           = script("state_set", "log")
	scriptSecret          = script("secret_set", "mail")
	scriptWrite           = script("port_write", "compact_run")
	scriptTake            = script("port_take", "compact_run").freeing()
	scriptSettle          = script("letter_settle", "quiesce")
	scriptPage            = script("port_page", "compact_run").freeing()
	scriptLog             = script("log_page", "mail").freeing()
	scriptGrow            = script("port_grow", "quiesce")
	scriptClose           = script("port_close", "quiesce")
	scriptDefault         = script("port_default", "quiesce")
	scriptSetPorts        = script("port_set", "quiesce")
	scriptConnect         = script("port_connect", "quiesce")
	scriptSweep           = script("due_sweep", "subtree").freeing()
	scriptRenew           = script("bell_renew", "compact_run").freeing()
	scriptPriority        = script("job_priority", "compact_run")
	scriptLimit           = script("limit_set", "compact_run").freeing()
	scriptUnclaim         = script("limited_leave", "compact_run").freeing()
	scriptLack            = script("ready_lack", "compact_run").freeing()
	scriptPop             = script("pop", "several").freeing()
	scriptFill            = script("ready_fill", "compact_run")
	scriptRelay           = script("mail_apply", "hub", "launch", "workkit").freeing()
	scriptRelayRead       = script("mail_read", "mail").freeing()
	scriptRelayDone       = script("mail_done", "mail").freeing()
	scriptPublish         = script("channel_publish", "hub")
	scriptAlias           = script("alias_set", "mail")
	scriptUnlock          = script("job_unlock", "mail").freeing()
	scriptRelock          = script("lock_refresh", "mail").freeing()
	scriptTypes           = script("types_set", "mail")
	scriptHeartbeat       = script("engine_beat", "mail").freeing()
	scriptHandler         = script("handler_set", "mail")
	scriptChanges         = script("changes", "mail").freeing()
	scriptKitAdd          = script("workkit_add", "mail", "workkit")
	scriptKitDue          = script("workkit_due", "mail", "workkit").freeing()
	scriptKitMove         = script("workkit_move", "mail", "workkit")
	scriptKitGone         = script("workkit_remove", "mail", "workkit").freeing()
	scriptKitEnd          = script("workkit_end", "mail", "workkit").freeing()
)

// programs are all scripts, by name. It is complete once the package is initialized.
var programs []program

// program is one script with its name.
type program struct {
	name string
	text string               // its own
	lua  func() *redis.Script // it alone, for servers without functions
	full func() *redis.Script // the same with FULL, see base.lua

	frees bool // it is sent again with FULL if the memory of the server is full
}

// freeing returns a program that goes on when the memory of the server is full, as what may free some must. It leaves
// there what needs memory: see FULL in base.lua.
func (p program) freeing() program {
	p.frees = true
	return p
}

// script is one with the libraries up to one, and files of its own in front: Lua allows 200 local names at a time. Most programs
// call the function, and need none of these texts, which repeat the libraries: each is put together when it is used first.
func script(name, last string, own ...string) program {
	var text strings.Builder
	for _, f := range append(own, name) {
		text.WriteString(lua(f))
	}
	p := program{name: name, text: text.String()}
	p.lua = alone(last, "", "start(keys, args, 0)\n"+p.text)
	p.full = alone(last, "#!lua flags=allow-oom\n", "start(keys, args, 0, true)\n"+p.text)
	programs = append(programs, p)
	return p
}

// alone returns a script that is not part of the function: a first line, the libraries up to one, and a text.
func alone(last, first, text string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script {
		var b strings.Builder
		b.WriteString(first + "local keys, args = KEYS, ARGV\nlocal LIFE = ''\n" + statemachine.Lua() + retentionLua())
		for _, f := range libraries[:slices.Index(libraries, last)+1] {
			b.WriteString(lua(f))
		}
		return redis.NewScript(b.String() + text)
	})
}

func lua(file string) string {
	text, err := scriptFiles.ReadFile("scripts/" + file + ".lua")
	if err != nil {
		panic(err) //nolint:forbidigo // the files are part of the program: this cannot happen once it was built and started
	}
	return mutation.Script(file, string(text))
}

// function is all scripts as one function of the server, which takes the name of a script
// as its first argument. The server reads and builds it once, not at each call, which
// makes a commit several times cheaper. Its name says what is in it, so that programs of
// different versions may share a server.
var functionName, functionText = function()

func function() (name, text string) {
	var b strings.Builder
	b.WriteString("local scripts\nlocal function build()\nlocal LIFE = table.concat(redis.call('TIME'), '.')\n" + statemachine.Lua() + retentionLua())
	for _, f := range libraries {
		b.WriteString(lua(f))
	}
	b.WriteString("local all = {}\n")
	for _, p := range programs {
		fmt.Fprintf(&b, "function all.%s()\n%send\n", p.name, p.text)
	}
	b.WriteString("return function(keys, args, full)\nstart(keys, args, 1, full)\nreturn all[args[1]]()\nend\nend\n")
	sum := sha256.Sum256([]byte(b.String()))
	name = "weir_" + hex.EncodeToString(sum[:8])
	// Much of Lua is not there yet while the server loads a library: the first call builds.
	return name, fmt.Sprintf("#!lua name=%s\n%slocal function run(keys, args, full)\n"+
		"if not scripts then scripts = build() end\nreturn scripts(keys, args, full)\nend\n"+
		"redis.register_function('%[1]s', function(keys, args) return run(keys, args) end)\n"+
		"redis.register_function{function_name = '%[1]s%[3]s', flags = { 'allow-oom' }, "+
		"callback = function(keys, args) return run(keys, args, true) end}\n", name, b.String(), whenFull)
}

// whenFull is behind the name of the function that a server runs also when its memory is full.
const whenFull = "_full"

// call is a call of a script in the shard whose due key is given.
type call struct {
	due    string
	args   []any
	script *program // in place of that of the others it goes with
}

// of is the script of a call that goes with those of another one.
func (c call) of(p program) program {
	if c.script != nil {
		return *c.script
	}
	return p
}

// runAll is runEach, and returns the first error if there is one.
func (s *Store) runAll(ctx context.Context, p program, calls []call) ([]any, error) {
	replies, errs := s.runEach(ctx, p, calls)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// run runs a script in the shard whose due key is given and returns its reply.
func (s *Store) run(ctx context.Context, p program, due string, args ...any) (any, error) {
	reply, err := s.call(ctx, p, due, args)
	if err != nil {
		return nil, fmt.Errorf("redis script %s: %w", p.name, s.explain(err))
	}
	return reply, nil
}

// call calls a script, and once more with FULL if memory is full and the script goes on then.
func (s *Store) call(ctx context.Context, p program, due string, args []any) (any, error) {
	reply, err := s.callOnce(ctx, p, due, args, false)
	if p.frees && outOfMemory(err) {
		return s.callOnce(ctx, p, due, args, true)
	}
	return reply, err
}

// callOnce uses the server's function, if it can have it, else a script.
func (s *Store) callOnce(ctx context.Context, p program, due string, args []any, full bool) (any, error) {
	lua, name := p.lua, functionName
	if full {
		lua, name = p.full, functionName+whenFull
	}
	if s.scripts.Load() {
		return lua().Run(ctx, s.rdb, []string{due}, args...).Result()
	}
	named := append([]any{p.name}, args...)
	reply, err := s.rdb.FCall(ctx, name, []string{due}, named...).Result()
	if err == nil || !missing(err) && !unsupported(err) {
		return reply, err
	}
	if !unsupported(err) {
		err = s.loadFunction(ctx)
	}
	switch {
	case unsupported(err):
		s.scripts.Store(true)
		return s.callOnce(ctx, p, due, args, full)
	case outOfMemory(err): // a full server takes no new function
		return lua().Run(ctx, s.rdb, []string{due}, args...).Result()
	case err != nil:
		return nil, err
	}
	return s.rdb.FCall(ctx, name, []string{due}, named...).Result()
}

// loadFunction gives the function to the server, or to all masters of a cluster.
func (s *Store) loadFunction(ctx context.Context) error {
	load := func(ctx context.Context, c redis.Cmdable) error {
		err := c.FunctionLoad(ctx, functionText).Err()
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return nil // somebody else was faster
		}
		return err
	}
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return load(ctx, c) })
	}
	return load(ctx, s.rdb)
}

// missing tells whether a server has to be given the function first.
func missing(err error) bool { return redis.HasErrorPrefix(err, "Function not found") }

// outOfMemory tells whether a server refused what needs memory, as its memory is full.
func outOfMemory(err error) bool { return redis.HasErrorPrefix(err, "OOM") }

// unsupported tells whether a server has no functions, or not for us.
func unsupported(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && (redis.HasErrorPrefix(err, "unknown command") || redis.HasErrorPrefix(err, "NOPERM"))
}
