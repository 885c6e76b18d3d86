package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// examined are the findings of one look.
type examined []redisstore.Finding

// examine examines a namespace, which must not change it.
func (e *env) examine(deep bool) examined {
	e.Helper()
	var found examined
	e.unchanged("examining", func() { found = look(e.T, redisstore.Config{URL: e.URL, Namespace: e.Namespace}, deep) })
	return found
}

func look(t *testing.T, cfg redisstore.Config, deep bool) examined {
	t.Helper()
	told := int64(-1)
	found, err := redisstore.Examine(t.Context(), cfg, redisstore.Examination{Deep: deep, Progress: func(done, all int64) {
		if done < told || done > all {
			t.Errorf("progress: %d of %d after %d", done, all, told)
		}
		told = done
	}})
	if err != nil {
		t.Fatal(err)
	}
	if deep != (told >= 0) {
		t.Errorf("a deep look is %t, progress %d", deep, told)
	}
	for _, f := range found {
		if bad := f.Level == redisstore.Warning || f.Level == redisstore.Problem; bad != (f.Fix != "") || f.Finding == "" {
			t.Errorf("finding %+v", f)
		}
		if strings.ContainsAny(f.Finding+f.Fix, "\r\n") || strings.Contains(f.Finding+f.Fix, "%!") {
			t.Errorf("not one line of text: %+v", f)
		}
	}
	return found
}

// of returns the findings of a check.
func (x examined) of(check string) examined {
	return slices.DeleteFunc(slices.Clone(x), func(f redisstore.Finding) bool { return f.Check != check })
}

// has wants a finding of that level, whose text and fix match.
func (x examined) has(t *testing.T, check string, level redisstore.Level, finding, fix string) {
	t.Helper()
	for _, f := range x.of(check) {
		if f.Level == level && regexp.MustCompile(finding).MatchString(f.Finding) && regexp.MustCompile(fix).MatchString(f.Fix) {
			return
		}
	}
	t.Errorf("no finding %s of %s like %q with fix %q among %+v", level, check, finding, fix, x.of(check))
}

// healthy makes the namespace look as if an engine served it that has type T.
func (e *env) healthy() {
	e.Helper()
	ctx := e.Context()
	e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "T", Queue: "default"}}))
	e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A", Concurrency: 4, Queues: map[string]int{"default": 1}, Types: []string{"T"}}))
	for _, k := range []string{"engines", "engine:A"} { // it lives, however long the test takes
		e.Check(e.Redis.PExpire(ctx, "weir:{"+e.Namespace+"}:"+k, time.Hour).Err())
	}
	e.Check(e.Redis.Set(ctx, "weir:{"+e.Namespace+"}:sweeper", "x", time.Hour).Err())
}

// task makes a task of asynq that is in one of its sets.
func (e *env) task(set string) {
	e.Helper()
	e.single()
	queue := "asynq:{weir:" + e.Namespace + ":default}:"
	e.Check(e.Redis.HSet(e.Context(), queue+"t:x", "msg", "x").Err())
	e.Check(e.Redis.ZAdd(e.Context(), queue+set, redis.Z{Score: 1, Member: "x"}).Err())
}

// durable opens a namespace on a redis-server that has nothing to be ashamed of.
func durable(t *testing.T, args ...string) *env {
	t.Helper()
	t.Parallel()
	return open(t, redistest.Start(t, append([]string{"--appendonly", "yes", "--aof-load-truncated", "no"}, args...)...).URL())
}

func TestExamineHealthy(t *testing.T) {
	e := durable(t)
	for _, none := range []string{"(devel)", "v0.0.0"} { // are no versions that differ
		e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{ID: none, Version: none, Queues: map[string]int{"default": 1}}))
	}
	e.healthy()
	e.tree()
	found := e.examine(true)
	for _, f := range found {
		if f.Level != redisstore.OK && f.Check != "latency" { // the machine may be busy
			e.Errorf("%+v", f)
		}
	}
	if len(found) != 28 {
		e.Errorf("%d findings", len(found))
	}
	if len(e.examine(false).of("orphans")) != 0 {
		e.Error("a look that is not deep was deep")
	}
}

// tree makes jobs of several kinds: with and without children, adopted, terminated.
func (e *env) tree() (root, child, single job.ID) {
	e.Helper()
	root = e.create(
		job.Node{Type: "T", Ports: ports(in("in"), out("out", to(1)))},
		job.Node{Name: "kid", Type: "T", Ports: ports(fed("in", 1))})
	e.write(root, "in", "1")
	single = e.single()
	e.Check(e.store.Adopt(e.Context(), root, single, "found"))
	e.end(e.single(), statemachine.Complete)
	return root, root.Nth(1), single
}

// On every kind of Redis, a namespace without faults has none.
func TestExamineEverywhere(t *testing.T) {
	each(t, func(e *env) {
		e.healthy()
		e.tree()
		found := e.examine(true)
		for _, f := range found {
			if f.Level != redisstore.OK && f.Level != redisstore.Skipped && f.Check != "persistence" && f.Check != "latency" {
				e.Errorf("%+v", f)
			}
		}
		found.has(e.T, "namespace", redisstore.OK, "namespace "+e.Namespace+" has layout 3 and 4 shards", "")
		found.has(e.T, "orphans", redisstore.OK, "^4 jobs, each where", "")
		if strings.HasPrefix(e.URL, "redis+cluster:") {
			found.has(e.T, "cluster", redisstore.OK, "3 masters, all slots are served", "")
		}
	})
}

// Each fault of a namespace is found, with what to do about it.
func TestExamineNamespace(t *testing.T) {
	e := durable(t)
	past := float64(time.Now().Add(-time.Hour).UnixMilli())
	for name, c := range map[string]struct {
		harm           func(e *env)
		check          string
		level          redisstore.Level
		finding, fix   string
		soundOtherwise bool // everything else is as it should be
	}{
		"no engine": {
			func(e *env) { e.Check(e.store.Leave(e.Context(), "A")) },
			"engines", redisstore.Warning, "^no engine lives", "weir worker", false,
		},
		"two versions": {
			func(e *env) {
				for _, version := range []string{"v2", "v3"} {
					e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{ID: version, Version: version, Queues: map[string]int{"default": 1}}))
				}
			},
			"engines", redisstore.Warning, "different versions of Weir: .*v2", "same version", true,
		},
		"an older version registered last": {
			func(e *env) {
				e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{ID: "new", Queues: map[string]int{"default": 1}, Types: []string{"T"}, Versions: map[string]int{"T": 2}}))
			},
			"types", redisstore.Warning, "^type T of queue default: engines have version 2, but one with version 1 has registered it last", "restart one with version 2", true,
		},
		"nobody sweeps": {
			func(e *env) { e.Check(e.Redis.Del(e.Context(), "weir:{"+e.Namespace+"}:sweeper").Err()) },
			"sweeper", redisstore.Problem, "none of them sweeps", "logs of the engines", true,
		},
		"a late job": {
			func(e *env) {
				id := e.single()
				e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: past, Member: string(id)}, redis.Z{Score: past, Member: "@" + string(id)}).Err())
			},
			"due", redisstore.Problem, `^2 things past due, .*: job [0-9a-f-]+, 1h\d+m\d+s late, timer of job [0-9a-f-]+, 1h\d+m\d+s late$`, "weir why", true,
		},
		"a late job and no engine": {
			func(e *env) {
				id := e.single()
				e.Check(e.store.Leave(e.Context(), "A"))
				e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: past, Member: string(id)}).Err())
			},
			"due", redisstore.Warning, "^1 thing past due", "start an engine", false,
		},
		"late work": {
			func(e *env) {
				due := "weir:{" + e.Namespace + ":0}:due"
				for _, member := range []string{"!mail", "!chores", "!joining a b c", "!full a b c", "!unborn a", "!limited mail"} {
					e.Check(e.Redis.ZAdd(e.Context(), due, redis.Z{Score: past, Member: member}).Err())
				}
			},
			"due", redisstore.Problem, "^6 things .*background tasks of weir:.*full port of job a.*adoption of job a.*who waits for limits in queue mail.*orders of weir:.*unfinished plan of job a", "log of the engine", true,
		},
		"forgotten chores": {
			func(e *env) {
				e.Check(e.Redis.RPush(e.Context(), "weir:{"+e.Namespace+":0}:chores", "delete x").Err())
			},
			"background tasks", redisstore.Problem, "^background tasks are left to do in 1 shard, and nothing reminds", `ZADD 'weir:\{.*:0\}:due' 0 '!chores'$`, true,
		},
		"forgotten orders": {
			func(e *env) {
				e.Check(e.Redis.XAdd(e.Context(), &redis.XAddArgs{Stream: "weir:{" + e.Namespace + "}:outbox", Values: []string{"to", "hub"}}).Err())
			},
			"outbox", redisstore.Problem, "nothing reminds", `ZADD 'weir:\{[a-z0-9]+\}:due' 0 '!mail'$`, true,
		},
		"a paused queue": {
			func(e *env) {
				_, err := e.store.(*redisstore.Store).PauseQueue(e.Context(), "default")
				e.Check(err)
			},
			"queues", redisstore.Warning, "^queue default is paused, with 0 jobs queued$", "^weir queue resume default$", true,
		},
		"a long line": {
			func(e *env) {
				id := e.single()
				e.Check(e.Redis.HSet(e.Context(), e.key(id), "queued", time.Now().Add(-time.Hour).UnixMilli()).Err())
			},
			"queues", redisstore.Warning, `^queue default, type T: the oldest of 1 ready job has been ready for 1h\d+m\d+s$`, "more engines", true,
		},
		"a long line for nobody": {
			func(e *env) {
				id := e.create(job.Node{Type: "Other"})
				e.Check(e.Redis.HSet(e.Context(), e.key(id), "queued", time.Now().Add(-time.Hour).UnixMilli()).Err())
			},
			"queues", redisstore.Warning, `^queue default, type Other: the oldest of 1 ready job has been ready for 1h\d+m\d+s$`, "^start an engine that has this type", false, // the job is found, too
		},
		"wakes given up": {
			func(e *env) {
				e.task("archived")
			},
			"queues", redisstore.Warning, "^asynq gave 1 wake of queue default up$", "asynq task deleteall --queue=weir:.*:default --state=archived", true,
		},
		"wakes tried again": {
			func(e *env) {
				e.task("retry")
			},
			"queues", redisstore.Warning, "^asynq tries 1 wake of queue default again$", "logs of the engines", true,
		},
		"a type of nobody": {
			func(e *env) {
				e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "Old", Queue: "mail"}}))
			},
			"types", redisstore.Warning, "^no engine that lives has, for queue mail, Old$", "weir types forget Old --queue mail$", true,
		},
		"a type of nobody that has jobs": {
			func(e *env) {
				e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "Old", Queue: "mail"}}))
				e.create(job.Node{Type: "Old", Queue: "mail"})
			},
			"types", redisstore.Warning, "^no engine that lives has, for queue mail, Old$", "^start an engine that has them$", false, // the queue is found, too
		},
		"engines that differ in a limit": {
			func(e *env) {
				e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{
					ID: "B", PID: 7, Host: "b", Concurrency: 4, Queues: map[string]int{"default": 1}, Types: []string{"T"}, Limits: map[string]job.TypeLimit{"T": {Max: 2}},
				}))
			},
			"limits", redisstore.Warning, "^engines differ in the limit of runs of type T of queue default: .*a limit of 2 in process 7 on b.*; no limit counts, which was registered last$", "the same program everywhere", true,
		},
		"a limit of an engine that is gone": {
			func(e *env) {
				e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: "default", MaxRunning: 3}}))
			},
			"limits", redisstore.Warning, "^a limit of 3 counts for type T of queue default, as registered, but no engine that lives declares that: no limit in process 0", "registers what its types declare", true,
		},
		"jobs that wait for a limit for long": {
			func(e *env) {
				for range 2 {
					e.enters(e.single())
				}
				e.refused(e.single())
				e.settled()
				for shard := range shards {
					if who, _ := e.Redis.ZRange(e.Context(), e.limitedSet(shard, "default"), 0, 0).Result(); len(who) > 0 {
						e.Check(e.Redis.ZIncrBy(e.Context(), e.limitedSet(shard, "default"), -float64(time.Hour.Milliseconds()), who[0]).Err())
					}
				}
			},
			"limits", redisstore.Warning, "^ready jobs wait for a place of a limit: 1 job waits in queue default, the first for 1h0m0s: for type:T$", "^weir limits lists", true,
		},
		"a ready job for nobody": {
			func(e *env) { e.create(job.Node{Type: "Other"}) },
			"ready", redisstore.Problem, "^no engine lives that could run 1 ready job of type Other of queue default: [0-9a-f-]+$", "start an engine", true,
		},
		"an old lock": {
			func(e *env) {
				id := e.single()
				value := fmt.Sprintf(`x {"by":"ann","since":%d}`, time.Now().Add(-3*time.Hour).UnixMilli())
				e.Check(e.Redis.Set(e.Context(), e.key(id)+":lock", value, time.Hour).Err())
			},
			"locks", redisstore.Warning, `^job [0-9a-f-]+ has been locked for 3h\d+m0s by "ann", and will be for another [0-9hm]+s$`, "^weir unlock [0-9a-f-]+ --force", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, e.URL)
			e.healthy()
			c.harm(e)
			found := e.examine(false)
			found.has(t, c.check, c.level, c.finding, c.fix)
			for _, f := range found {
				if c.soundOtherwise && f.Check != c.check && f.Check != "latency" && f.Level != redisstore.OK {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// A namespace of another layout, or none, is not looked at further.
func TestExamineLayout(t *testing.T) {
	e := durable(t)
	for meta, want := range map[string]string{
		`format "4" shards "4"`: `layout "4"`, `format "2" shards "many"`: `says it has "many" shards`, `format "2" shards "0"`: `"0" shards`, "": "never been used",
	} {
		ns := redistest.Namespace(t)
		key := "weir:{" + ns + "}:meta"
		if words := strings.Fields(strings.ReplaceAll(meta, `"`, "")); len(words) > 0 {
			e.Check(e.Redis.HSet(e.Context(), key, words).Err())
		}
		found := look(t, redisstore.Config{URL: e.URL, Namespace: ns}, false)
		last := found[len(found)-1]
		if last.Check != "namespace" || last.Level == redisstore.OK || !strings.Contains(last.Finding, want) {
			t.Errorf("%q: %+v", meta, last)
		}
		if meta == "" {
			n, err := e.Redis.Exists(e.Context(), key).Result()
			e.Check(err)
			e.equal("keys made by looking", n, int64(0))
		}
	}
}

// A plan that is being created in parts is nothing wrong.
func TestExamineUncreated(t *testing.T) {
	e := durable(t)
	e.healthy()
	nodes := []job.Node{{Type: "T"}}
	for i := range 1500 {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "T"})
	}
	id := newID(t)
	_, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: nodes}, "test")
	e.Check(err)
	e.examine(true).has(t, "orphans", redisstore.OK, "^1501 jobs", "")
	// As it was before the first job came.
	e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
	e.Check(e.Redis.ZRem(e.Context(), strings.TrimSuffix(e.due(id), "due")+"index", string(id)).Err())
	e.Check(e.Redis.Del(e.Context(), strings.TrimSuffix(e.due(id), "due")+"chores").Err())
	e.Check(e.Redis.RPush(e.Context(), e.key(id)+":held", "x").Err())
	e.examine(true).has(t, "orphans", redisstore.OK, "^1500 jobs", "")
}

// The commands that are asked about are those that the scripts use, and a user who may
// give these and no others can do everything.
func TestNeededCommands(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	var allowed []any
	for _, line := range redisstore.NeededCommands {
		name, _, _ := strings.Cut(line, " ")
		known[name] = true
		allowed = append(allowed, "+"+name)
	}
	for name, text := range scripts(t) {
		for _, m := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(text, -1) {
			if !known[strings.ToLower(m[1])] {
				t.Errorf("script %s uses %s, which weir doctor does not ask about", name, m[1])
			}
		}
	}

	s := redistest.Start(t, "--appendonly", "yes")
	setUser := func(rules ...any) {
		t.Helper()
		if err := s.Client(t).Do(t.Context(), append([]any{"ACL", "SETUSER", "weir", "reset", "on", ">secret"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	url := "redis://weir:secret@" + s.Addr()
	setUser(append(slices.Clone(allowed), "~weir:*", "~asynq:*", "&weir:*", "&asynq:*", "+acl")...)
	e := open(t, url)
	serve(e)
	found := look(t, redisstore.Config{URL: url, Namespace: e.Namespace}, false)
	found.has(t, "permissions", redisstore.Warning, "^user weir may not use command dbsize, command info, command memory\\|usage, which weir stats",
		`^redis-cli ACL SETUSER weir \+dbsize \+info \+memory\|usage, then ACL SAVE$`)
	found.has(t, "version", redisstore.Skipped, "does not tell redis_version", "")

	setUser("+@all", "-hset", "-@dangerous", "+info", "+acl", "~weir:*", "&weir:*")
	found = look(t, redisstore.Config{URL: url, Namespace: e.Namespace}, false)
	found.has(t, "permissions", redisstore.Problem, "channel asynq:cancel.*key asynq:queues.*key asynq:.weir:.*command hset", "weir acl worker . xargs redis-cli ACL SETUSER weir, then")
	setUser("+@all", "-acl", "~*", "&*")
	look(t, redisstore.Config{URL: url, Namespace: e.Namespace}, false).has(t, "permissions", redisstore.Skipped, "does not tell: NOPERM|may not look", "")
}

// napper is a worker for serve.
type napper struct {
	In  port.In[int]
	Out port.Out[int]
}

func (napper) JobType() string { return "Nap" }

// Run implements worker.Worker.
func (n *napper) Run(_ context.Context, run *worker.Run) error {
	for v, err := range n.In.All() {
		if err != nil {
			return err
		}
		if err := errors.Join(n.Out.Write(v), run.State().Set("last", v), run.Log("napped")); err != nil {
			return err
		}
	}
	return nil
}

// serve runs jobs of a namespace with an engine, does to one most that can be done, and
// stops.
func serve(e *env) {
	e.Helper()
	store := e.store.(*redisstore.Store)
	var log bytes.Buffer
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&napper{}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e.Check(err)
	ctx, stop := context.WithTimeout(e.Context(), time.Minute)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	client := client.New(store)
	h, err := client.Start(ctx, job.Single(&napper{}, ""), job.Alias("nap"))
	e.Check(err)
	e.Check(h.Write(ctx, "in", 1, 2, 3))
	for {
		items, err := h.Drain(ctx, port.Output, "out")
		e.Check(err)
		if len(items) == 3 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	lock, err := h.Lock(ctx, time.Minute, time.Minute)
	e.Check(err)
	e.Check(h.RunAfter(ctx, 10*time.Millisecond))
	e.Check(lock.Release(ctx))
	e.Check(client.Publish(ctx, "/x", 1))
	_, err = h.Runs(ctx, 10)
	e.Check(err)
	e.Check(h.Close(ctx, "in"))
	_, err = h.Wait(ctx)
	e.Check(err)
	_, err = store.Sweep(ctx)
	e.Check(err)
	e.Check(h.Terminate(ctx))
	for {
		err := h.Delete(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, job.ErrStatus) {
			e.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	e.Check(<-ran)
	said := regexp.MustCompile(`(?m)^.*no append-only file.*\n`).ReplaceAllString(log.String(), "") // tests may do without
	if said != "" {
		e.Errorf("the engine complains: %s", said)
	}
}

func TestExamineDeadLetters(t *testing.T) {
	each(t, func(e *env) {
		e.healthy()
		a := e.fussy()
		e.examine(false).has(t, "dead letters", redisstore.OK, "^no job has dead letters$", "^$")
		e.letters(a, 2)
		e.examine(false).has(t, "dead letters", redisstore.Warning, "^dead letters of 1 job: "+string(a)+"$", "^weir dead list ")
		for range 4 {
			e.letters(e.fussy(), 1)
		}
		e.examine(false).has(t, "dead letters", redisstore.Warning, "^dead letters of 5 jobs: ", "weir dead requeue")
		_, err := client.New(e.store).RequeueAll(e.Context(), client.LetterFilter{}, nil)
		e.Check(err)
		e.examine(false).has(t, "dead letters", redisstore.OK, "^no job", "^$")
	})
}
