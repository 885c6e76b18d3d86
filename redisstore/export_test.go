package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// NeededCommands are those that Examine asks about.
var NeededCommands = append(append([]string{}, reading...), writing...)

// Occupy makes commits of a job's shard wait, at most so long, as if one were under way.
// waiting tells how many do, pass lets them go.
func Occupy(s *Store, id job.ID, wait time.Duration) (waiting func() int, pass func()) {
	due := s.keys.dueOf(id)
	s.lanes.wait = wait
	s.lanes.enter(due, nil)
	return func() int {
		s.lanes.mu.Lock()
		defer s.lanes.mu.Unlock()
		return len(s.lanes.busy[due])
	}, func() { s.lanes.pass(due) }
}

// EncryptionOf is what Examine says of a URL's encryption.
func EncryptionOf(t testing.TB, url string) Finding {
	t.Helper()
	target, err := redisconn.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	e := &examiner{Store: &Store{target: target}, check: "encryption"}
	e.encryption()
	return e.findings[0]
}

// RetentionLua is what the scripts know of the retention of namespaces.
func RetentionLua() string { return retentionLua() }

// Programs are all scripts as servers get them that have no functions, by name.
func Programs() map[string]*redis.Script {
	all := make(map[string]*redis.Script, len(programs))
	for _, p := range programs {
		all[p.name] = p.lua()
	}
	return all
}

// DeltaArgs is deltaArgs.
func DeltaArgs(d *store.Delta) []any { return deltaArgs(nil, d) }

// HiddenArgs are those of a delta that goes through a codec.
func HiddenArgs(d store.Delta, c job.Codec) ([]any, error) {
	hidden, err := (&secrets{codec: c}).hideDelta(d)
	return deltaArgs(nil, &hidden), err
}

// Shown is what a look at a job tells of what is stored, when everything is encoded.
func Shown(i job.Info, c job.Codec) job.Info {
	(&secrets{codec: c}).showInfo(&i)
	return i
}

// Hidden is how a codec's text is stored.
func Hidden(plain string, c job.Codec) (string, error) {
	return (&secrets{codec: c}).hideText("", "", plain)
}

// InfoOf is what is known of a job with these fields.
func InfoOf(id job.ID, fields map[string]string) (*job.Info, error) {
	var d decoder
	var hash []any
	for field, value := range fields {
		hash = append(hash, field, value)
	}
	return d.info(id, hash, []any{}, []any{}), d.err
}

// Rewrite gives a store its own function, in whose text a piece is replaced.
func Rewrite(t testing.TB, s *Store, old, replacement string) {
	t.Helper()
	if n := strings.Count(functionText, old); n != 1 {
		t.Fatalf("%q is %d times in the scripts, not once", old, n)
	}
	sum := sha256.Sum256([]byte(replacement))
	name := functionName + hex.EncodeToString(sum[:4])
	text := strings.ReplaceAll(strings.Replace(functionText, old, replacement, 1), functionName, name)
	if err := s.rdb.FunctionLoad(t.Context(), text).Err(); err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
	s.rdb.AddHook(renaming{name})
}

// renaming calls another function of the server.
type renaming struct{ name string }

func (r renaming) rename(c redis.Cmder) {
	if args := c.Args(); strings.EqualFold(fmt.Sprint(args[0]), "fcall") && args[1] == functionName {
		args[1] = r.name
	}
}

// DialHook implements redis.Hook.
func (renaming) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (r renaming) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		r.rename(c)
		return next(ctx, c)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (r renaming) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, c := range all {
			r.rename(c)
		}
		return next(ctx, all)
	}
}

// Met has a store create the trees of a plan as records: it is not the first of its kind.
func Met(t testing.TB, s *Store, root job.ID, plan *job.Plan) {
	t.Helper()
	nodes, err := s.nodesOf(root, plan, "")
	if err != nil {
		t.Fatal(err)
	}
	if tree := s.compactOf(plan, nodes); tree != nil {
		note(&s.definitions, &s.definitions.seen, tree.digest, true)
	}
}

// Hashes has a store create no trees as records, for tests that look into the hashes of jobs.
func Hashes(s *Store) { s.records.Store(false) }

// Upgrade is what a store does that finds a namespace of the first format.
func Upgrade(ctx context.Context, s *Store) error { return s.upgrade(ctx) }

// RecordArgs are those of a transaction of one delta that completes a record, or nil.
func RecordArgs(d store.Delta) []any {
	fields := ""
	for _, t := range d.Takes {
		fields += "i." + t.Port + "\x1f0\x1f"
	}
	for _, w := range d.Writes {
		fields += "o." + w.Port + "\x1f0\x1f"
	}
	for _, name := range d.Closes {
		fields += "o." + name + "\x1f0\x1f"
	}
	r := &record{root: d.Job, def: readDefinition(fields), keep: "-", words: []string{"0", "0", "token", "0", ""}}
	if t := (keyspace{"test", 1}).completes(r, store.Tx{Deltas: []store.Delta{d}}); t != nil {
		return t.args
	}
	return nil
}

// ReadRecord reads a record and a definition of it, and returns the fields of its jobs that have any, and the numbers of the jobs in a
// row behind the first; ok is false if it is no record.
func ReadRecord(root job.ID, text, defined string) (fields []string, row []int, ok bool) {
	r := readRecord(root, text)
	if r == nil {
		return nil, nil, false
	}
	if r.def = readDefinition(defined); r.lead >= len(r.def) {
		return nil, nil, false
	}
	for n := range r.def {
		fields = append(fields, r.fields(n))
	}
	return fields, r.row(len(r.def)), true
}

// Hook adds a hook.
func Hook(s *Store, h redis.Hook) { s.rdb.AddHook(h) }
