package redisstore_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/statemachine"
)

// functions are what a server has, and whether one was ever called.
func functions(e *env) (names []string, called bool) {
	e.Helper()
	stats, err := e.Redis.Info(e.Context(), "commandstats").Result()
	e.Check(err)
	libraries, err := e.Redis.FunctionList(e.Context(), redis.FunctionListQuery{}).Result()
	e.Check(err)
	for _, l := range libraries {
		names = append(names, l.Name)
	}
	return names, regexp.MustCompile(`cmdstat_fcall:calls=[1-9]`).MatchString(stats)
}

// A server that has functions gets one, which does what the scripts do; if it loses it, it
// gets it again.
func TestFunction(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	e := open(t, srv.URL())
	id := e.single()
	e.end(id, statemachine.Complete)
	names, called := functions(e)
	if len(names) != 1 || !strings.HasPrefix(names[0], "weir_") || !called {
		e.Errorf("the server has the libraries %v, called: %v", names, called)
	}

	e.Check(e.Redis.FunctionFlush(e.Context()).Err())
	e.Check(e.store.Apply(e.Context(), id, statemachine.Force))
	e.end(id, statemachine.Complete)
	e.is(statemachine.Completed, id)
	again, _ := functions(e)
	e.equal("libraries", again, names)
}

// A user who may not load functions uses scripts.
func TestNoFunctions(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-function", "-fcall").Err(); err != nil {
		t.Fatal(err)
	}
	e := open(t, strings.Replace(srv.URL(), "redis://", "redis://old:secret@", 1))
	id := e.single()
	e.end(id, statemachine.Complete)
	e.is(statemachine.Completed, id)
	e.Redis = rdb // who may ask
	names, called := functions(e)
	e.equal("libraries and calls", []any{len(names), called}, []any{0, false})
}
