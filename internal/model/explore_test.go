package model_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// The explorer goes through every order in which a few processes can do something to a few jobs, with a few faults, on the real scripts: it
// puts a Redis into a state, has one thing happen, and looks at the state that this makes. Scopes say what there is, moves what may happen.

// world is a state: what Redis holds, and what each process is about.
type world struct {
	dump  []any // keys and what DUMP says of them
	text  string
	Procs []proc
	Left  budget // faults that may still happen
	Copy  *call  // it is still on its way, though its sender has sent it again
	Who   int    // that sent it
	Ended []int  // jobs that were terminated before this

	saved     []any // what Redis has on disk, if it is to lose what came after
	savedText string
}

// budget is how often each kind of fault may happen.
type budget struct {
	Lost   int // the reply of a call, which is sent again
	Late   int // a call arrives a second time, at any time
	Crash  int // a process forgets everything
	Zombie int // the lease of a run ends though its process lives
	// Restart is that Redis loses all that came after some moment.
	Restart int
}

// theClock stands still but for sweeps: a state does not depend on when it was reached.
const theClock = 1_700_000_000

// lab is a Redis that can be put into any state, with a store for each process.
type lab struct {
	redis  *redis.Client
	stores []*redisstore.Store
	scope  *scope
	// process is what each store calls its process, which is random; worlds have the number of the store in its place.
	process []string
	empty   []any // a namespace that was opened
}

const readState = `local out = {}
local keys = redis.call('KEYS', '*')
table.sort(keys)
for _, k in ipairs(keys) do
  if string.sub(k, 1, 5) ~= 'asynq' and k ~= 'clock' then
    local type, all = redis.call('TYPE', k).ok, nil
    if type == 'string' then all = { redis.call('GET', k) }
    elseif type == 'list' then all = redis.call('LRANGE', k, 0, -1)
    elseif type == 'zset' then all = redis.call('ZRANGE', k, 0, -1, 'WITHSCORES')
    elseif type == 'set' then all = redis.call('SMEMBERS', k) table.sort(all)
    else
      all = redis.call('HGETALL', k)
      local fields = {}
      for i = 1, #all, 2 do fields[#fields + 1] = all[i] .. '\1' .. all[i + 1] end
      table.sort(fields)
      all = fields
    end
    out[#out + 1], out[#out + 2], out[#out + 3] = k, redis.call('DUMP', k), table.concat(all, '\2')
  end
end
return out`

const writeState = `redis.call('FLUSHDB')
for i = 1, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end
return 1`

// broken is how scripts do not keep a rule: what they have is replaced.
type broken struct {
	rule   string
	scope  string // that shows it
	pieces []piece
}

type piece struct{ old, new string }

func newLab(t *testing.T, sc *scope, rule *broken) *lab {
	t.Helper()
	srv := redistest.Start(t)
	l := &lab{redis: srv.Client(t), scope: sc}
	for range sc.engines + 1 {
		s, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL(), Namespace: "explore", Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		l.stores = append(l.stores, s)
	}
	if _, err := l.stores[0].Info(t.Context(), root); err == nil { // the server has the function now
		t.Fatal("a job that nobody created is there")
	}
	if _, err := l.stores[0].Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	pieces := []piece{{"local clock = call('TIME')", fmt.Sprintf("local clock = { call('GET', 'clock') or '%d', '0' }", theClock)}}
	if rule != nil {
		pieces = append(pieces, rule.pieces...)
	}
	libraries, err := l.redis.FunctionList(t.Context(), redis.FunctionListQuery{WithCode: true}).Result()
	if err != nil || len(libraries) != 1 {
		t.Fatalf("the server has %d functions: %v", len(libraries), err)
	}
	code := libraries[0].Code
	for _, p := range pieces {
		if n := strings.Count(code, p.old); n != 1 {
			t.Fatalf("%q is %d times in the scripts, want it once", p.old, n)
		}
		code = strings.Replace(code, p.old, p.new, 1)
	}
	if err := l.redis.FunctionLoadReplace(t.Context(), code).Err(); err != nil {
		t.Fatal(err)
	}
	var w world
	if err := l.take(t.Context(), &w); err != nil {
		t.Fatal(err)
	}
	l.empty = w.dump
	for i, s := range l.stores {
		if err := l.meet(t.Context(), s); err != nil {
			t.Fatalf("store %d: %v", i, err)
		}
	}
	return l
}

// meet learns what a store calls its process.
func (l *lab) meet(ctx context.Context, s *redisstore.Store) error {
	if err := l.put(ctx, &world{dump: l.empty}); err != nil {
		return err
	}
	if _, err := s.Create(ctx, root, &job.Plan{Nodes: []job.Node{{Type: "T"}}}, ""); err != nil {
		return err
	}
	if begun, err := s.Pop(ctx, job.DefaultQueue, 0, -1, store.Begin{Token: "first", Lease: time.Hour, Batch: 1, Bytes: 1}, []string{"T"}); err != nil || len(begun) != 1 {
		return fmt.Errorf("%d runs began: %w", len(begun), err)
	}
	keys, err := l.redis.Keys(ctx, "*:pops:*").Result()
	if err != nil || len(keys) != 1 {
		return fmt.Errorf("what pops began is remembered in %q: %w", keys, err)
	}
	l.process = append(l.process, keys[0][strings.LastIndexByte(keys[0], ':')+1:])
	return nil
}

// put puts Redis into the state of a world.
func (l *lab) put(ctx context.Context, w *world) error {
	dump := slices.Clone(w.dump)
	for i := 0; i < len(dump); i += 2 {
		if name, n, ok := strings.Cut(dump[i].(string), "pops:#"); ok {
			at, _ := strconv.Atoi(n)
			dump[i] = name + "pops:" + l.process[at]
		}
	}
	return l.redis.Eval(ctx, writeState, nil, dump...).Err()
}

var moment = regexp.MustCompile(`\b17000\d{8}\b`)

// take notes what Redis holds. Times are numbered in their order, as only that matters.
func (l *lab) take(ctx context.Context, w *world) error {
	all, err := l.redis.Eval(ctx, readState, nil).StringSlice()
	if err != nil {
		return err
	}
	var text strings.Builder
	w.dump = nil
	for i := 0; i < len(all); i += 3 {
		if name, process, ok := strings.Cut(all[i], "pops:"); ok {
			all[i] = fmt.Sprintf("%spops:#%d", name, slices.Index(l.process, process))
		}
		w.dump = append(w.dump, all[i], all[i+1])
		text.WriteString(all[i] + "\x00" + all[i+2] + "\x00")
	}
	found := append(moment.FindAllString(text.String(), -1), fmt.Sprint(theClock*1000))
	slices.Sort(found)
	found = slices.Compact(found)
	w.text = moment.ReplaceAllStringFunc(text.String(), func(m string) string {
		at, _ := slices.BinarySearch(found, m)
		return fmt.Sprintf("T%d", at)
	})
	return nil
}

// key is what a world is known by.
type key [16]byte

var token = regexp.MustCompile(`token-\d+-`)

// key is the same for worlds in which the same may happen: tokens are numbered as they appear, as only that counts whether they are
// the same, and engines may change their places.
func (w *world) key() key {
	engines := len(w.Procs) - 1
	if engines < 2 {
		return w.sum(w.text)
	}
	c := w.clone()
	c.Procs[0], c.Procs[1] = c.Procs[1], c.Procs[0]
	if w.Copy != nil && w.Who < 2 {
		c.Who = 1 - w.Who
	}
	swap := strings.NewReplacer("pops:#0", "pops:#1", "pops:#1", "pops:#0")
	c.savedText = swap.Replace(w.savedText)
	one, other := w.sum(w.text), c.sum(swap.Replace(w.text))
	if bytes.Compare(one[:], other[:]) < 0 {
		return one
	}
	return other
}

func (w *world) sum(text string) key {
	raw, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	numbers := map[string]int{}
	sum := sha256.Sum256(token.ReplaceAllFunc(slices.Concat(raw, []byte(text), []byte(w.savedText)), func(t []byte) []byte {
		n, ok := numbers[string(t)]
		if !ok {
			n = len(numbers)
			numbers[string(t)] = n
		}
		return fmt.Append(nil, "t", n)
	}))
	return key(sum[:16])
}

// step is how a world was reached first.
type step struct {
	from  int
	label string
}

// found is what an exploration came to.
type found struct {
	worlds, moves, ends, depth int
	records                    int    // of the ends, in which the tree is a record still
	complete                   bool   // all worlds were looked at
	wrong                      string // what was seen; empty: nothing
	path                       []string
}

// looked is what was seen in a world.
type looked struct {
	moves []move
	end   bool   // all is done
	wrong string // empty: nothing
}

// move is something that happened, and what came of it.
type move struct {
	label string
	fault bool
	to    *world
}

// explore goes through all worlds, breadth first, until one is wrong, and then looks whether the work gets done from each of them without
// further faults.
func (l *lab) explore(t *testing.T, most int) (f found) {
	t.Helper()
	ctx := t.Context()
	first, err := l.begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[key]int{first.key(): 0}
	steps := []step{{from: -1}}
	var edges [][2]int // without faults
	var ends []int
	level, numbers := []*world{first}, []int{0}
	for len(level) > 0 && len(steps) < most {
		var worlds []*world
		var nextNumbers []int
		for i, w := range level {
			from := numbers[i]
			r, err := l.look(ctx, w)
			if err != nil {
				t.Fatalf("after %q: %v", path(steps, from), err)
			}
			if r.wrong != "" {
				f.wrong, f.path, f.worlds = r.wrong, path(steps, from), len(steps)
				return f
			}
			if r.end {
				ends = append(ends, from)
				if strings.Contains(w.text, "}:r:") {
					f.records++
				}
			}
			for _, m := range r.moves {
				f.moves++
				k := m.to.key()
				to, ok := seen[k]
				if !ok {
					to = len(steps)
					seen[k] = to
					steps = append(steps, step{from, m.label})
					worlds, nextNumbers = append(worlds, m.to), append(nextNumbers, to)
				}
				if !m.fault && to != from {
					edges = append(edges, [2]int{from, to})
				}
			}
		}
		f.depth++
		level, numbers = worlds, nextNumbers
	}
	f.worlds, f.ends = len(steps), len(ends)
	if len(level) > 0 {
		return f
	}
	f.complete = true
	if stuck := unfinished(len(steps), edges, ends); stuck >= 0 {
		f.wrong, f.path = "from here the work is never done, even without further faults", path(steps, stuck)
	}
	return f
}

// unfinished returns the first world from which no end is reached, or -1.
func unfinished(n int, edges [][2]int, ends []int) int {
	before := make([][]int, n)
	for _, e := range edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	good := make([]bool, n)
	for _, e := range ends {
		good[e] = true
	}
	for todo := slices.Clone(ends); len(todo) > 0; {
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range before[one] {
			if !good[b] {
				good[b] = true
				todo = append(todo, b)
			}
		}
	}
	return slices.Index(good, false)
}

func path(steps []step, at int) (all []string) {
	for ; at > 0; at = steps[at].from {
		all = append(all, steps[at].label)
	}
	slices.Reverse(all)
	return all
}
