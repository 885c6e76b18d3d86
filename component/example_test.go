package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/weirtest"
)

// stub is the test of an example.
type stub struct{ cleanups []func() }

func (s *stub) Helper()                           {}
func (s *stub) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (s *stub) Cleanup(fn func())                 { s.cleanups = append(s.cleanups, fn) }

func (s *stub) end() {
	for _, fn := range slices.Backward(s.cleanups) {
		fn()
	}
}

// messages are what examples feed, by port.
type messages map[string][]any

// show runs a plan on messages, closes the ports, lets an hour pass and prints what comes
// out of each port.
func show(p component.Policy, plan job.Planner, in messages) {
	t := new(stub)
	defer t.end()
	e := weirtest.New(t, component.All(p)...)
	h := e.Start(plan)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		e.Feed(h, name, in[name]...)
		e.CloseIn(h, name)
	}
	e.Advance(time.Hour)
	got := outputs(t, h, outPorts(e, h)...)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		fmt.Println(name+":", strings.Join(got[name], " "))
	}
	for _, f := range e.Failures(h) {
		fmt.Println(f.Error)
	}
}

// run is show of one component under the zero Policy.
func run(c component.Component, in messages) {
	show(component.Policy{}, job.Single(c, ""), in)
}

// folder makes one for an example.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// object is short for a message.
type object = map[string]any

// A graph of components: the large files of a list, three at a time.
func Example() {
	g := graph.New("large")
	large := graph.Add(g, "large", &component.Filter{Expr: "it.size >= 1000"})
	names := graph.Add(g, "names", &component.Map{Expr: "it.name"})
	batch := graph.Add(g, "batch", &component.Batch{Size: 3})
	graph.Connect(graph.Input[json.RawMessage](g, "files"), large.In)
	graph.Connect(large.Out, names.In)
	graph.Connect(names.Out, batch.In)
	graph.Export(g, "lists", batch.Out)

	var files []any
	for i := range 10 {
		files = append(files, object{"name": fmt.Sprint("file", i), "size": 500 * i})
	}
	show(component.Policy{}, g, messages{"files": files})
	// Output:
	// lists: ["file2","file3","file4"] ["file5","file6","file7"] ["file8","file9"]
}

// Parameters can be checked before anything runs.
func ExampleMap_Validate() {
	fmt.Println((&component.Map{Expr: "it.price *", OnError: "ignore"}).Validate())
	// Output:
	// configuration of map: expr: expression "it.price *": unexpected token EOF (line 1, column 10); on_error "ignore": use fail, skip, err
}

func ExampleCatalogue() {
	docs, err := component.Catalogue()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range docs[:3] {
		fmt.Printf("%s %s\n", d.Type, d.Summary)
	}
	// Output:
	// batch writes lists of N messages, or of those that came within a time
	// collect writes all messages as one list at the end
	// cron writes a message at the times of a schedule
}

func ExampleMap() {
	run(&component.Map{Expr: `{"id": it.id, "total": it.price * it.n}`}, messages{
		"in": {object{"id": 1, "price": 2.5, "n": 2}, object{"id": 2, "price": 3, "n": 1}},
	})
	// Output: out: {"id":1,"total":5} {"id":2,"total":3}
}

// What cannot be worked on goes another way.
func ExampleMap_onError() {
	run(&component.Map{Expr: "it + 1", OnError: component.OnErrorPort}, messages{"in": {1, "x", 2}})
	// Output:
	// err: {"error":"expression \"it + 1\": invalid operation: string + int (line 1, column 4)","data":"x"}
	// out: 2 3
}

func ExampleFilter() {
	run(&component.Filter{Expr: `it.kind == "bird"`}, messages{
		"in": {object{"kind": "bird", "n": 1}, object{"kind": "fish", "n": 2}, object{"kind": "bird", "n": 3}},
	})
	// Output: out: {"kind":"bird","n":1} {"kind":"bird","n":3}
}

func ExampleFlatMap() {
	run(&component.FlatMap{Expr: `split(it, " ")`}, messages{"in": {"to be", "or not"}})
	// Output: out: "to" "be" "or" "not"
}

func ExampleRoute() {
	run(&component.Route{
		Cases:   []component.Case{{When: "it < 0", To: "negative"}, {When: "it % 2 == 0", To: "even"}},
		Default: "odd",
	}, messages{"in": {1, -2, 3, 4}})
	// Output:
	// even: 4
	// negative: -2
	// odd: 1 3
}

func ExampleTee() {
	run(&component.Tee{To: []string{"archive", "work"}}, messages{"in": {1, 2}})
	// Output:
	// archive: 1 2
	// work: 1 2
}

func ExampleEmit() {
	run(&component.Emit{Items: []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`[1]`)}}, nil)
	// Output: out: "a" [1]
}

func ExampleMerge() {
	run(&component.Merge{From: []string{"a", "b"}}, messages{"a": {1, 2, 3}, "b": {10}})
	// Output: out: 1 10 2 3
}

func ExampleMergeOrdered() {
	run(&component.MergeOrdered{From: []string{"a", "b"}}, messages{"a": {1, 2, 3}, "b": {10}})
	// Output: out: 1 10 2 3
}

func ExampleMergePriority() {
	run(&component.MergePriority{From: []string{"urgent", "normal"}}, messages{"normal": {1, 2}, "urgent": {10}})
	// Output: out: 10 1 2
}

func ExampleMergeSorted() {
	run(&component.MergeSorted{From: []string{"a", "b"}}, messages{"a": {1, 4, 9}, "b": {2, 3, 10}})
	// Output: out: 1 2 3 4 9 10
}

func ExampleZip() {
	run(&component.Zip{From: []string{"name", "age"}, Rest: component.RestPad}, messages{"name": {"Ann", "Bob"}, "age": {31}})
	// Output: out: ["Ann",31] ["Bob",null]
}

func ExampleJoin() {
	run(&component.Join{LeftKey: "it.id", RightKey: "it.user", Kind: component.JoinLeft}, messages{
		"left":  {object{"id": 1}, object{"id": 2}},
		"right": {object{"user": 1, "n": 7}, object{"user": 3, "n": 8}},
	})
	// Output: out: {"key":1,"left":{"id":1},"right":{"n":7,"user":1}} {"key":2,"left":{"id":2},"right":null}
}

func ExampleBatch() {
	run(&component.Batch{Size: 2, MaxWait: component.Duration(time.Minute)}, messages{"in": {1, 2, 3}})
	// Output: out: [1,2] [3]
}

func ExampleCollect() {
	run(&component.Collect{}, messages{"in": {1, 2, 3}})
	// Output: out: [1,2,3]
}

func ExampleWindow() {
	run(&component.Window{Every: component.Duration(time.Minute)}, messages{"in": {1, 2}})
	// Output: out: {"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:01:00Z","items":[1,2]}
}

func ExampleReduce() {
	run(&component.Reduce{Expr: "acc + it.n", Seed: json.RawMessage("0"), Key: "it.kind"}, messages{
		"in": {object{"kind": "bird", "n": 1}, object{"kind": "fish", "n": 2}, object{"kind": "bird", "n": 3}},
	})
	// Output: out: {"key":"bird","value":4} {"key":"fish","value":2}
}

func ExampleDedupe() {
	run(&component.Dedupe{Key: "lower(it)"}, messages{"in": {"a", "b", "A", "c", "b"}})
	// Output: out: "a" "b" "c"
}

// Five messages, two a minute.
func ExampleThrottle() {
	t := new(stub)
	defer t.end()
	c := &component.Throttle{Rate: 2, Per: component.Duration(time.Minute)}
	e := weirtest.New(t, c)
	h := e.StartWorker(c)
	e.Feed(h, "in", 1, 2, 3, 4, 5)
	e.RunUntilIdle()
	for range 3 {
		fmt.Println(e.Now().Format(time.TimeOnly), weirtest.Drain[int](e, h, "out"))
		e.Advance(time.Minute)
	}
	// Output:
	// 00:00:00 [1 2]
	// 00:01:00 [3 4]
	// 00:02:00 [5]
}

func ExampleDelay() {
	t := new(stub)
	defer t.end()
	c := &component.Delay{By: component.Duration(time.Minute)}
	e := weirtest.New(t, c)
	h := e.StartWorker(c)
	e.Feed(h, "in", 1, 2)
	e.Advance(59 * time.Second)
	fmt.Println(e.Now().Format(time.TimeOnly), weirtest.Drain[int](e, h, "out"))
	e.Advance(time.Second)
	fmt.Println(e.Now().Format(time.TimeOnly), weirtest.Drain[int](e, h, "out"))
	// Output:
	// 00:00:59 []
	// 00:01:00 [1 2]
}

func ExampleGate() {
	t := new(stub)
	defer t.end()
	e := weirtest.New(t, &component.Gate{})
	h := e.StartWorker(&component.Gate{})
	e.Feed(h, "in", 1, 2)
	e.RunUntilIdle()
	fmt.Println(weirtest.Drain[int](e, h, "out"))
	e.Feed(h, "open", true)
	e.RunUntilIdle()
	fmt.Println(weirtest.Drain[int](e, h, "out"))
	// Output:
	// []
	// [1 2]
}

func ExampleTicker() {
	run(&component.Ticker{Every: component.Duration(time.Minute), Count: 2}, nil)
	// Output: out: {"n":1,"at":"2026-01-01T00:01:00Z"} {"n":2,"at":"2026-01-01T00:02:00Z"}
}

func ExampleCron() {
	run(&component.Cron{Schedule: "*/15 * * * *", Count: 2}, nil)
	// Output: out: {"n":1,"at":"2026-01-01T00:15:00Z"} {"n":2,"at":"2026-01-01T00:30:00Z"}
}

func ExampleEvery() {
	run(&component.Every{Every: component.Duration(time.Hour), Immediately: true, Count: 2}, nil)
	// Output: out: {"n":1,"at":"2026-01-01T00:00:00Z"} {"n":2,"at":"2026-01-01T01:00:00Z"}
}

func ExampleDebounce() {
	run(&component.Debounce{Wait: component.Duration(time.Minute), Keep: component.KeepAll}, messages{"in": {1, 2, 3}})
	// Output: out: [1,2,3]
}

func ExampleReadFile() {
	dir, remove := folder()
	defer remove()
	if err := os.WriteFile(filepath.Join(dir, "birds.csv"), []byte("name,size\nwren,10\nswan,150\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	show(component.Policy{Root: dir}, job.Single(&component.ReadFile{Path: "birds.csv"}, ""), nil)
	// Output: out: {"name":"wren","size":"10"} {"name":"swan","size":"150"}
}

func ExampleWriteFile() {
	dir, remove := folder()
	defer remove()
	show(component.Policy{Root: dir}, job.Single(&component.WriteFile{Path: "birds.csv"}, ""), messages{
		"in": {object{"name": "wren", "size": 10}, object{"name": "swan, white", "size": 150}},
	})
	text, err := os.ReadFile(filepath.Join(dir, "birds.csv"))
	fmt.Print(string(text), err)
	// Output:
	// name,size
	// wren,10
	// "swan, white",150
	// <nil>
}

func ExampleHTTPRequest() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		fmt.Fprint(w, "you asked for ", r.URL.Path)
	}))
	defer server.Close()

	show(component.Policy{HTTP: component.HTTPPolicy{AllowPrivate: true}}, job.Single(&component.HTTPRequest{}, ""), messages{
		"in": {component.Request{URL: server.URL + "/a"}},
	})
	// By default jobs cannot ask this machine, nor private networks.
	show(component.Policy{}, job.Single(&component.HTTPRequest{URL: "http://127.0.0.1:80/", OnError: component.OnErrorPort}, ""), messages{
		"in": {component.Request{}},
	})
	// Output:
	// out: {"status":200,"headers":{"content-length":"16","content-type":"text/plain; charset=utf-8"},"body":"you asked for /a"}
	// err: {"error":"Get \"http://127.0.0.1:80/\": dial tcp 127.0.0.1:80: not allowed by the policy: 127.0.0.1 is not a public address; whoever runs the engine may allow it, as --allow-private-http does","data":{}}
}

// A job for each order, and the results in the order of the orders.
func ExampleEach() {
	run(&component.Each{Type: "reduce", Args: json.RawMessage(`{"expr": "acc + it.n * it.price", "seed": 0}`)}, messages{
		"in": {object{"n": 2, "price": 5}, object{"n": 1, "price": 7}},
	})
	// Output: out: 10 7
}

// A graph for each message.
func ExampleEachOf() {
	t := new(stub)
	defer t.end()
	g := graph.New("words")
	words := graph.Add(g, "words", &component.FlatMap{Expr: `split(it, " ")`})
	count := graph.Add(g, "count", &component.Reduce{Expr: "acc + 1", Seed: json.RawMessage("0")})
	graph.Connect(graph.Input[json.RawMessage](g, "in"), words.In)
	graph.Connect(words.Out, count.In)
	graph.Export(g, "out", count.Out)
	each := component.EachOf("words_each", g)

	e := weirtest.New(t, append(component.All(component.Policy{}), each)...)
	h := e.StartWorker(each)
	if err := h.Write(context.Background(), "in", "to be or not", "to be"); err != nil {
		fmt.Println(err)
		return
	}
	e.RunUntilIdle()
	fmt.Println(weirtest.Drain[int](e, h, "out"))
	// Output: [4 2]
}
