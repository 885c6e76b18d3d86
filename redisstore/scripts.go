package redisstore

import (
	"context"
	"embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/statemachine"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// The scripts of the store. Each is the state machine's tables, base.lua, the further
// libraries named, and its file.
var (
	scriptBegin    = script("edge", "port", "run", "begin")
	scriptCommit   = script("edge", "port", "run", "subtree", "tx", "commit")
	scriptStep     = script("edge", "port", "run", "subtree", "tx", "step")
	scriptCreate   = script("edge", "port", "run", "create")
	scriptPart     = script("edge", "port", "run", "create_part")
	scriptReserve  = script("tree_reserve")
	scriptWalk     = script("tree_walk")
	scriptRefresh  = script("run_refresh")
	scriptApply    = script("edge", "port", "run", "subtree", "job_apply")
	scriptAlarm    = script("job_alarm")
	scriptAdopt    = script("job_adopt")
	scriptDelete   = script("edge", "port", "run", "subtree", "job_delete")
	scriptChores   = script("edge", "port", "run", "subtree", "chore_run")
	scriptPatch    = script("edge", "port", "run", "subtree", "patch", "graph_patch")
	scriptState    = script("state_set")
	scriptWrite    = script("edge", "port", "port_write")
	scriptTake     = script("edge", "port", "port_take")
	scriptPage     = script("edge", "port", "run", "port_page")
	scriptGrow     = script("edge", "port", "port_grow")
	scriptClose    = script("edge", "port", "port_close")
	scriptDefault  = script("edge", "port", "port_default")
	scriptSetPorts = script("edge", "port", "port_set")
	scriptConnect  = script("edge", "port", "port_connect")
	scriptSweep    = script("edge", "port", "run", "subtree", "due_sweep")
	scriptRenew    = script("wake_renew")
	scriptMail     = script("edge", "port", "run", "subtree", "hub", "mail_apply")
	scriptMailRead = script("mail_read")
	scriptMailDone = script("mail_done")
	scriptPublish  = script("edge", "port", "hub", "channel_publish")
	scriptAlias    = script("alias_set")
	scriptUnlock   = script("job_unlock")
	scriptBeat     = script("engine_beat")
)

// program is one script with its name, for messages.
type program struct {
	name string
	lua  *redis.Script
}

func script(files ...string) program {
	src := statemachine.Lua()
	for _, f := range append([]string{"base"}, files...) {
		text, err := scriptFiles.ReadFile("scripts/" + f + ".lua")
		if err != nil {
			panic(err) //nolint:forbidigo // the files are part of the program: this cannot happen once it was built and started
		}
		src += string(text)
	}
	return program{name: files[len(files)-1], lua: redis.NewScript(src)}
}

// run runs a script in the shard whose due key is given and returns its reply.
func (s *Store) run(ctx context.Context, p program, due string, args ...any) (any, error) {
	reply, err := p.lua.Run(ctx, s.rdb, []string{due}, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("redis script %s: %w", p.name, s.explain(err))
	}
	return reply, nil
}
