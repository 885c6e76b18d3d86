package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// The workers of docs/stuck.md besides components.
type (
	counter  struct{ In port.In[int] }
	uploader struct{}
	importer struct{}
	crawler  struct{}
)

func (counter) JobType() string  { return "Counter" }
func (uploader) JobType() string { return "Upload" }
func (importer) JobType() string { return "Import" }
func (crawler) JobType() string  { return "Crawl" }

func (c *counter) Run(_ context.Context, run *worker.Run) error {
	var sum int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for n, err := range c.In.All() {
		if err != nil {
			return err
		}
		sum += n
	}
	if err := run.State().Set("sum", sum); err != nil {
		return err
	}
	return worker.ErrSuspend
}

// uploads counts the runs of uploaders.
var uploads atomic.Int32

// Run fails the first time.
func (uploader) Run(context.Context, *worker.Run) error {
	if uploads.Add(1) == 1 {
		return errors.New("the server is busy")
	}
	return nil
}

func (uploader) WorkerOptions() worker.Options {
	return worker.Options{Tries: 5, Backoff: worker.ExponentialBackoff(time.Hour, time.Hour)}
}

// stuck are the graphs of the page, by their aliases. Each reads from an input.
var stuck = map[string]string{
	"orders": `
weir: 1
nodes:
  parse: {type: map, args: {expr: '{what: split(it, " ")[0], n: int(split(it, " ")[1])}'}}
  list: {type: collect}
edges: [parse.out -> list.in]
inputs: {lines: parse.in}
outputs: {all: list.out}
`,
	"photos": `
weir: 1
nodes:
  list: {type: map, args: {expr: it}}
  resize: {type: map, args: {expr: it}, queue: slow}
edges: [{from: list.out, to: resize.in, limit: 2}]
inputs: {files: list.in}
outputs: {thumbs: resize.out}
`,
	"report": `
weir: 1
nodes:
  trim: {type: map, args: {expr: trim(it)}}
  collect: {type: collect}
edges: [trim.out -> collect.in]
inputs: {lines: trim.in}
outputs: {all: collect.out}
`,
	"ages": `
weir: 1
nodes:
  adults: {type: filter, args: {expr: it > 17}}
  years: {type: map, args: {expr: it - 17}}
  list: {type: collect}
edges: [adults.out -> years.in, years.out -> list.in]
inputs: {people: adults.in}
outputs: {all: list.out}
`,
}

// stage is where the page is played.
type stage struct {
	*testing.T
	url    string
	store  *redisstore.Store
	rdb    *redis.Client
	client *client.Client
	ids    map[string]string // of the page, to those here
	names  map[string]string // the other way
}

func newStage(t *testing.T) *stage {
	t.Helper()
	server := redistest.Start(t)
	store := enginetest.Open(t, redisstore.Config{URL: server.URL()})
	return &stage{T: t, url: server.URL(), store: store, rdb: server.Client(t), client: client.New(store), ids: map[string]string{}, names: map[string]string{}}
}

func (s *stage) start(p job.Planner, alias string) *client.Handle {
	s.Helper()
	h, err := s.client.Start(s.Context(), p, job.Alias(alias), job.By("shop"))
	enginetest.Check(s, err)
	return h
}

func (s *stage) graph(name string, messages ...any) *client.Handle {
	s.Helper()
	file, err := graphfile.Parse(name+".yaml", []byte(strings.TrimPrefix(stuck[name], "\n")))
	enginetest.Check(s, err)
	file.Name = name
	var known []any
	for _, w := range component.All(component.Policy{}) {
		known = append(known, w)
	}
	g, err := file.Build(known, nil)
	enginetest.Check(s, err)
	h := s.start(g, name)
	info, err := h.Info(s.Context())
	enginetest.Check(s, err)
	for _, p := range info.Ports {
		if p.Dir == port.Input {
			enginetest.Check(s, h.Write(s.Context(), p.Name, messages...))
		}
	}
	return h
}

// until waits until a job of a tree has a status.
func (s *stage) until(h *client.Handle, n int, status statemachine.Status) {
	s.Helper()
	child, err := s.client.Find(s.Context(), string(h.ID().Nth(n)))
	enginetest.Check(s, err)
	_, err = child.WaitFor(s.Context(), func(i *job.Info) bool { return i.Status == status })
	enginetest.Check(s, err)
}

// engine serves the default queue.
func (s *stage) engine() {
	s.Helper()
	workers := append(component.All(component.Policy{}), &counter{}, &uploader{})
	enginetest.Serve(s, worker.Config{Store: s.store, Workers: workers})
}

// set sets the stage: all pipelines get stuck.
func (s *stage) set() {
	s.Helper()
	orders := s.graph("orders", "apples 3", "pears ?", "plums 5")
	photos := s.graph("photos", "a.png", "b.png")
	report := s.graph("report", "one ", "two")
	ages := s.graph("ages", 12, 18, 30)
	count, upload := s.start(job.Single(&counter{}, ""), "counter"), s.start(job.Single(&uploader{}, ""), "upload")
	imports := s.start(job.Single(&importer{}, ""), "import")
	mailer := s.start(job.Single(&component.Map{Expr: "it"}, ""), "mailer")
	_, err := s.store.Lock(s.Context(), mailer.ID(), "ann", time.Hour, 0)
	enginetest.Check(s, err)
	s.crawl(s.start(job.Single(&crawler{}, "crawlers"), "crawler"))
	s.engine()
	s.until(orders, 0, statemachine.Failed)
	s.until(photos, 2, statemachine.Queued)
	s.until(photos, 1, statemachine.Suspended)
	enginetest.Check(s, photos.Write(s.Context(), "files", "c.png"))
	s.until(report, 2, statemachine.Suspended)
	s.until(ages, 3, statemachine.Suspended)
	for _, h := range []*client.Handle{report, ages} {
		_, err := h.WaitFor(s.Context(), func(i *job.Info) bool {
			tree, err := h.Tree(s.Context())
			enginetest.Check(s, err)
			return strings.HasPrefix(tree[0].Reason, "idle")
		})
		enginetest.Check(s, err)
	}
	s.until(count, 0, statemachine.Suspended)
	s.until(upload, 0, statemachine.Scheduled)
	_, err = imports.WaitFor(s.Context(), func(i *job.Info) bool { return i.Reason != "" })
	enginetest.Check(s, err)
	s.age()
}

// age makes the jobs some hours old, so that their ages do not change.
func (s *stage) age() {
	s.Helper()
	then := time.Now().Add(-3*time.Hour - 30*time.Minute)
	keys, err := s.rdb.Keys(s.Context(), "weir:{main:*}:j:*").Result()
	enginetest.Check(s, err)
	for _, key := range keys {
		if strings.Count(key, ":") == 4 { // weir:{main:7}:j:<id>, and nothing behind it
			enginetest.Check(s, s.rdb.HSet(s.Context(), key, "created", then.UnixMilli()).Err())
		}
	}
}

// crawl lets a job run as often as it may this minute.
func (s *stage) crawl(h *client.Handle) {
	s.Helper()
	for n := 0; ; n++ {
		b := store.Begin{Token: fmt.Sprint("run ", n), Lease: time.Minute, Batch: 1, Bytes: 1, Limits: map[string]int{"": 2}}
		snap, err := s.store.Begin(s.Context(), h.ID(), b)
		if errors.Is(err, job.ErrRate) {
			return
		}
		enginetest.Check(s, err)
		d := store.Delta{Job: h.ID(), Token: snap.Token, Outcome: statemachine.Requeue}
		_, err = s.store.Commit(s.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
		enginetest.Check(s, err)
	}
}

var (
	spans = regexp.MustCompile(`\b\d+(ms|[smhd])(\d+[smh])?\b`)
	hours = regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d\d\d|Z)`)
)

// shown is an output as the page shows it: with its IDs, and times that are always the same.
func (s *stage) shown(out string) string {
	out = uuids.ReplaceAllStringFunc(out, func(id string) string { return s.names[id] })
	out = moment.ReplaceAllString(out, "2026-01-02T15:04:05Z")
	out = hours.ReplaceAllString(out, "15:04:05$1")
	return regexp.MustCompile(`15:04:05\.\d+`).ReplaceAllString(out, "15:04:05.000")
}

// same compares outputs but for spans of time, and the blanks that they move.
func same(a, b string) bool {
	still := func(text string) string {
		return strings.Join(strings.Fields(spans.ReplaceAllString(text, "5s")), " ")
	}
	return still(a) == still(b)
}

// play runs a command of the page and returns what it prints.
func (s *stage) play(line string) string {
	s.Helper()
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		args = append(args, uuids.ReplaceAllStringFunc(strings.Trim(word, "'"), func(id string) string { return s.ids[id] }))
	}
	if args[0] != "weir" {
		s.Fatalf("no command of weir: %s", line)
	}
	args = append([]string{"--redis", s.url}, args[1:]...)
	if args[len(args)-1] == "&" {
		enginetest.Run(s, func(ctx context.Context) error {
			if code := run(ctx, args[:len(args)-1], &buffer{}, &buffer{}); code != 0 {
				return errors.New(line)
			}
			return nil
		})
		return ""
	}
	var out bytes.Buffer
	run(s.Context(), args, &out, &out)
	return s.shown(out.String())
}

// TestStuck plays docs/stuck.md: each of its commands prints what it says.
func TestStuck(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	path := filepath.Join("..", "..", "docs", "stuck.md")
	raw, err := os.ReadFile(path)
	enginetest.Check(t, err)
	s := newStage(t)
	uploads.Store(0)
	s.set()
	var roots []*job.Info
	for i, err := range s.client.Jobs(t.Context(), job.Filter{}) {
		enginetest.Check(s, err)
		roots = append(roots, i)
	}
	for n, i := range roots {
		page := fmt.Sprintf("019e1f0e-0000-7000-8000-%012d", len(roots)-n)
		s.ids[page], s.names[string(i.ID)] = string(i.ID), page
	}
	page := fence.ReplaceAllStringFunc(string(raw), func(block string) string {
		lines := strings.SplitAfter(block, "\n")
		if lines[0] != "```console\n" {
			return block
		}
		var got strings.Builder
		got.WriteString(lines[0])
		for n := 1; n < len(lines)-1; {
			command, ok := strings.CutPrefix(strings.TrimSpace(lines[n]), "$ ")
			if !ok {
				t.Fatalf("no command: %s", lines[n])
			}
			got.WriteString(lines[n])
			out := s.play(command)
			n++
			var want strings.Builder
			for ; n < len(lines)-1 && !strings.HasPrefix(lines[n], "$ "); n++ {
				want.WriteString(lines[n])
			}
			if !golden.Updating() && !same(out, want.String()) {
				t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", command, out, want.String())
			}
			if same(out, want.String()) {
				out = want.String()
			}
			got.WriteString(out)
		}
		got.WriteString(lines[len(lines)-1])
		return got.String()
	})
	if golden.Updating() {
		enginetest.Check(s, os.WriteFile(path, []byte(page), 0o644)) //nolint:gosec // a page of the documentation
	}
}
