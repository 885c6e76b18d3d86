package api_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// wide is a graph of that many chains of three jobs, the last of which collects, beside one that starts a job for each message.
func wide(chains int, more ...string) string {
	var nodes, edges, inputs []string
	for n := range chains {
		nodes = append(nodes, fmt.Sprintf(`"l%d":{"type":"lane"}`, n))
		inputs = append(inputs, fmt.Sprintf(`"in%d":"l%d.in"`, n, n))
	}
	nodes = append(nodes, `"each":{"type":"each","args":{"type":"map","args":{"expr":"8 / int(it)"}}}`)
	nodes, inputs = append(nodes, more...), append(inputs, `"items":"each.in"`)
	edges = append(edges, `"a.out -> b.in.out -> c.in"`)
	lane := `{"nodes":{"a":{"type":"map","args":{"expr":"it"}},"b":{"type":"map","args":{"expr":"it"},"in":{"in":{"limit":5}}},"c":{"type":"reduce","args":{"expr":"acc + it","seed":0}}},` +
		`"edges":[` + strings.Join(edges, ",") + `],"inputs":{"in":"a.in"}}`
	return `{"weir":1,"name":"wide","nodes":{` + strings.Join(nodes, ",") + `},"inputs":{` + strings.Join(inputs, ",") + `},"graphs":{"lane":` + lane + `}}`
}

// idle returns a tree in which nothing goes on.
func (s *service) idle(id job.ID) []*job.Info {
	s.Helper()
	var before []*job.Info
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		tree, err := s.store.Tree(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		busy := false
		for _, i := range tree {
			busy = busy || i.Status == statemachine.Running || i.Status == statemachine.Terminating
		}
		if !busy && reflect.DeepEqual(before, tree) {
			return tree
		}
		if before = tree; time.Now().After(deadline) {
			s.Fatal("the tree does not come to rest")
		}
	}
}

// Of a large tree that is watched only what has changed is read, and what is known of it then is all of it.
func TestTreeReader(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := serve(t, url, nil)
		s.ask("POST", "/v1/graphs", `{"alias":"wide","graph":`+wide(60)+`}`).is(http.StatusCreated, nil)
		found, err := client.New(s.store).Find(t.Context(), "wide")
		if err != nil {
			t.Fatal(err)
		}
		id := found.ID()
		view := draw.View{Spawned: 1, Spawns: true, Toggled: map[string]bool{"wide/l3": true}}
		read := api.TreeReader(s.store, id, view)
		whole := func() time.Time {
			t.Helper()
			_, at, _, err := read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		s.idle(id)
		whole() // finds that the tree is large
		whole()
		write := func(in, messages string) {
			s.ask("POST", "/v1/jobs/wide/ports/in/"+in+"/messages", `{"messages":`+messages+`}`).is(http.StatusOK, nil)
		}
		post := func(path string, body any, status int) { s.ask("POST", path, body).is(status, nil) }
		for _, step := range []struct {
			name string
			do   func()
			all  bool // is read
		}{
			{name: "nothing", do: func() {}},
			{name: "messages pass", do: func() { write("in1", "[1,2,3]"); write("in2", "[4]") }},
			{name: "children come and go", do: func() { write("items", "[1,2,4]") }},
			{name: "a child fails, and with it all that wait for it", do: func() { write("items", `["x"]`) }, all: true},
			{name: "messages wait", do: func() { post("/v1/queues/default/pause", nil, http.StatusOK); write("in1", "[5]"); write("in1", "[6]") }},
			{name: "a full port", do: func() { write("in3", "[1,2,3,4,5,6,7,8,9]"); post("/v1/queues/default/resume", nil, http.StatusOK) }},
			{name: "a job ends", do: func() { post("/v1/jobs/"+string(id.Nth(4))+"/terminate", nil, http.StatusNoContent) }},
			{name: "an input is closed", do: func() { post("/v1/jobs/wide/ports/in/in5/close", nil, http.StatusNoContent) }},
			{name: "a patch", do: func() {
				post("/v1/jobs/wide/patch", `{"graph":`+wide(60, `"late":{"type":"lane"}`)+`}`, http.StatusNoContent)
			}, all: true},
		} {
			before := whole()
			step.do()
			want := s.idle(id)
			got, at, picture, err := read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if drawn, err := api.PictureOf(want, view); err != nil || picture != drawn {
				t.Errorf("%s: %v: the picture is not that of the tree\n%s\n%s", step.name, err, picture, drawn)
			}
			if !at.Equal(before) && !step.all {
				t.Errorf("%s: all was read", step.name)
			}
			for n := range max(len(got), len(want)) {
				if n >= len(got) || n >= len(want) || !reflect.DeepEqual(got[n], want[n]) {
					t.Errorf("%s: of %d and %d jobs, number %d differs\ngot  %+v\nwant %+v", step.name, len(got), len(want), n, got[min(n, len(got)-1)], want[min(n, len(want)-1)])
					break
				}
			}
		}
	})
}
