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

// The scripts of the store. Each is the state machine's tables, lib.lua and the file;
// those that commit have tx.lua as well.
var (
	scriptBegin     = script("begin")
	scriptCommit    = script("tx", "commit")
	scriptStep      = script("tx", "step")
	scriptCreate    = script("create")
	scriptWrite     = script("port_write")
	scriptTake      = script("port_take")
	scriptPage      = script("port_page")
	scriptClose     = script("port_close")
	scriptApply     = script("job_apply")
	scriptInfo      = script("job_info")
	scriptRefresh   = script("run_refresh")
	scriptSweep     = script("due_sweep")
	scriptWakeRenew = script("wake_renew")
)

// program is one script with its name, for messages.
type program struct {
	name string
	lua  *redis.Script
}

func script(files ...string) program {
	src := statemachine.Lua()
	for _, f := range append([]string{"lib"}, files...) {
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
