package redisstore_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// user makes a user of a server for a role in a namespace, and returns a URL with it.
func user(t *testing.T, s *redistest.Server, ns string, a redisstore.ACL) string {
	t.Helper()
	rules, err := a.Rules(redisstore.Config{URL: s.URL(), Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	name := ns + "-" + string(a.Role)
	words := []any{"ACL", "SETUSER", name, "reset", "on", ">secret"}
	for _, r := range rules {
		words = append(words, r)
	}
	if err := s.Client(t).Do(t.Context(), words...).Err(); err != nil {
		t.Fatal(err)
	}
	return "redis://" + name + ":secret@" + s.Addr()
}

// openAs opens a namespace as a user.
func openAs(t *testing.T, url, ns string) *env {
	t.Helper()
	return openBy(t, redisstore.Config{URL: url, Namespace: ns})
}

// A worker with the rules that are printed, and no others, can do everything in its
// namespace, with a function of the server and without.
func TestACLWorker(t *testing.T) {
	t.Parallel()
	for _, functions := range []bool{false, true} {
		s := redistest.Start(t, "--appendonly", "yes")
		ns := redistest.Namespace(t)
		e := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleWorker, Functions: functions}), ns)
		serve(e)
		_, err := e.store.(*redisstore.Store).PauseQueue(t.Context(), "default")
		e.Check(err)
		_, err = e.store.(*redisstore.Store).ResumeQueue(t.Context(), "default")
		e.Check(err)
		e.healthy()

		e.Check(s.Client(t).Do(t.Context(), "ACL", "SETUSER", ns+"-worker", "+acl|whoami", "+acl|dryrun").Err())
		found := look(t, redisstore.Config{URL: e.URL, Namespace: ns}, false)
		found.has(t, "permissions", redisstore.OK, "may do all that is needed", "")

		libraries, err := s.Client(t).FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
		e.Check(err)
		e.equal("a function was loaded", len(libraries) == 1, functions)
	}
}

// Users of a namespace reach no key of another, neither Weir's nor asynq's, neither
// directly nor from within scripts. Only asynq's lists of queues and servers are shared.
func TestACLNamespaces(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	mine, theirs := redistest.Namespace(t), redistest.Namespace(t)
	their := openAs(t, user(t, s, theirs, redisstore.ACL{Role: redisstore.RoleWorker}), theirs)
	id := their.single()
	their.write(id, "in", `"theirs"`)
	var foreign []string
	keys, err := s.Client(t).Keys(t.Context(), "*").Result()
	their.Check(err)
	for _, k := range keys {
		if strings.Contains(k, theirs) {
			foreign = append(foreign, k)
		}
	}
	asynqs := slices.ContainsFunc(foreign, func(k string) bool { return strings.HasPrefix(k, "asynq:") })
	if len(foreign) < 5 || !asynqs {
		t.Fatalf("too few keys to be a test: %v", foreign)
	}
	before := their.dumpAs(s)
	for _, role := range []redisstore.Role{redisstore.RoleWorker, redisstore.RoleReader} {
		rdb := enginetest.Connect(t, user(t, s, mine, redisstore.ACL{Role: role}))
		for _, k := range append(foreign, "other", "weir:{"+mine+"x}:meta", "asynq:{weir:"+mine+"x:q}:pending") {
			for _, words := range [][]any{
				{"GET", k},
				{"HGETALL", k},
				{"SET", k, "x"},
				{"DEL", k},
				{"EVAL", "return redis.call('GET', KEYS[1])", 1, k},
				{"EVAL", "return redis.call('GET', ARGV[1])", 0, k},
				{"EVAL", "return redis.call('DEL', ARGV[1])", 0, k},
				{"EVAL", "return redis.call('DEL', ARGV[1])", 1, "weir:{" + mine + "}:x", k},
				{"FCALL", "weir", 1, k},
			} {
				if err := rdb.Do(t.Context(), words...).Err(); err == nil || !regexp.MustCompile("NOPERM|can't (access|run)").MatchString(err.Error()) {
					t.Errorf("%s: %v: %v", role, words, err)
				}
			}
		}
		for _, words := range [][]any{
			{"KEYS", "*"},
			{"SCAN", "0"},
			{"CONFIG", "GET", "requirepass"},
			{"ACL", "LIST"},
			{"FLUSHALL"},
			{"FLUSHDB"},
			{"SCRIPT", "FLUSH"},
			{"FUNCTION", "LOAD", "REPLACE", "#!lua name=x\nredis.register_function('x', function() end)"},
			{"PUBLISH", "weir:{" + theirs + "}:nudge", "x"},
		} {
			if err := rdb.Do(t.Context(), words...).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
				t.Errorf("%s: %v: %v", role, words, err)
			}
		}
	}
	their.equal("keys of the other namespace", their.dumpAs(s), before)
}

// dumpAs is dump with the eyes of an administrator.
func (e *env) dumpAs(s *redistest.Server) map[string]string {
	e.Helper()
	admin := *e
	admin.Redis = s.Client(e)
	return admin.dump()
}

// A reader can open a store and read, and each change is refused in words that help.
func TestACLReader(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ns := redistest.Namespace(t)
	url := user(t, s, ns, redisstore.ACL{Role: redisstore.RoleReader})
	_, err := redisstore.Open(t.Context(), redisstore.Config{URL: url, Namespace: ns})
	if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "weir acl") {
		t.Errorf("opening a namespace that is not there: %v", err)
	}
	w := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleWorker}), ns)
	id := w.single()
	w.write(id, "in", "1")
	keyed := w.keyed("k")
	for _, loaded := range []bool{false, true} {
		if loaded {
			admin := openAs(t, s.URL(), ns)
			admin.single() // loads the function
		}
		r := openAs(t, url, ns)
		r.holds(id, 'i', "in", "1")
		r.equal("job", r.info(id).ID, id)
		turn, err := r.store.Turn(t.Context(), keyed)
		r.Check(err)
		r.equal("turn", turn, job.Turn{Key: "k", Holder: keyed})
		before := w.dumpAs(s)
		for name, fn := range map[string]func() error{
			"write": func() error {
				return r.store.Write(t.Context(), id, store.Write{Dir: 'i', Port: "in", Items: raws("2")})
			},
			"begin": func() error { _, err := r.store.Begin(t.Context(), id, beginning()); return err },
			"end":   func() error { return r.store.Apply(t.Context(), id, statemachine.Terminate) },
			"alias": func() error { _, err := r.store.Claim(t.Context(), "x", id); return err },
			"create": func() error {
				_, err := r.store.Create(t.Context(), newID(t), &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
				return err
			},
			"register": func() error { return r.store.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: "q"}}) },
			"lock":     func() error { _, err := r.store.Lock(t.Context(), id, "", 1e9, 0); return err },
			"publish":  func() error { return r.store.Publish(t.Context(), "/x", raws("1")) },
		} {
			err := fn()
			if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "weir acl") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, function loaded %t: %v", name, loaded, err)
			}
		}
		w.equal("keys after a reader tried to change them", w.dumpAs(s), before)
	}
	if err := s.Client(t).Do(t.Context(), "ACL", "SETUSER", ns+"-reader", "+acl|whoami", "+acl|dryrun").Err(); err != nil {
		t.Fatal(err)
	}
	look(t, redisstore.Config{URL: url, Namespace: ns}, false).has(t, "permissions", redisstore.OK, "change nothing", "")
}

func TestACLRefuses(t *testing.T) {
	t.Parallel()
	url := "redis://localhost"
	for want, c := range map[string]struct {
		acl redisstore.ACL
		cfg redisstore.Config
	}{
		`unknown role "boss"`:   {redisstore.ACL{Role: "boss"}, redisstore.Config{URL: url}},
		"only a worker":         {redisstore.ACL{Role: redisstore.RoleReader, Functions: true}, redisstore.Config{URL: url}},
		"embedded":              {redisstore.ACL{Role: redisstore.RoleReader}, redisstore.Config{}},
		"lower-case letters":    {redisstore.ACL{Role: redisstore.RoleReader}, redisstore.Config{URL: url, Namespace: "a* ~*"}},
		"the scheme is missing": {redisstore.ACL{Role: redisstore.RoleReader}, redisstore.Config{URL: "localhost"}},
	} {
		if _, err := c.acl.Rules(c.cfg); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v %+v: %v, want %s", c.acl, c.cfg, err, want)
		}
	}
}

// The rules are enough on a cluster, too.
func TestACLCluster(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		hosts, ok := strings.CutPrefix(url, "redis+cluster://")
		if !ok {
			return
		}
		ns := redistest.Namespace(t)
		for _, role := range []redisstore.Role{redisstore.RoleWorker, redisstore.RoleReader} {
			rules, err := redisstore.ACL{Role: role}.Rules(redisstore.Config{URL: url, Namespace: ns})
			if err != nil {
				t.Fatal(err)
			}
			words := []any{"ACL", "SETUSER", ns + string(role), "on", ">secret"}
			for _, r := range rules {
				words = append(words, r)
			}
			rdb := enginetest.Connect(t, url).(*redis.ClusterClient)
			if err := rdb.ForEachShard(t.Context(), func(ctx context.Context, c *redis.Client) error { return c.Do(ctx, words...).Err() }); err != nil {
				t.Fatal(err)
			}
			e := openAs(t, strings.Replace(url, hosts, ns+string(role)+":secret@"+hosts, 1), ns)
			if role == redisstore.RoleWorker {
				serve(e)
				continue
			}
			_, err = e.store.Types(t.Context())
			e.Check(err)
			_, err = e.store.Create(t.Context(), newID(t), &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
			e.fails(err, job.ErrConfig)
		}
	})
}
