package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) {
	logging.Disable() // of servers that tests kill
	testscript.Main(m, map[string]func(){"weir": main})
}

type resize struct {
	Width int
	In    port.In[string]
	Thumb port.Out[string]
}

func (resize) JobType() string { return "Resize" }

// TestScripts runs testdata/*.txt against a Redis that holds one tree, named album.
func TestScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h, err := job.NewClient(store).Start(t.Context(), job.Single(&resize{Width: 64}, ""), job.Alias("album"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Write(context.WithoutCancel(t.Context()), "in", "a.png", "b.png"); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", server.URL())
			env.Setenv("EMPTY", strings.TrimSuffix(server.URL(), "/0")+"/5") // for act.txt alone
			env.Setenv("ALBUM", string(h.ID()))
			env.Setenv("HOME", os.TempDir())
			return nil
		},
	})
}
