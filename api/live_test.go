package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
)

const shop = `{"alias":"shop","graph":{"weir":1,"name":"shop","nodes":{"a":{"type":"map","args":{"expr":"it"}},"pay":{"type":"payment"}},"edges":["a.out -> pay.in"],"inputs":{"in":"a.in"},"outputs":{"out":"pay.out"},"graphs":{"payment":{"nodes":{"bank":{"type":"map","args":{"expr":"it"},"in":{"in":{"limit":7}}}},"inputs":{"in":"bank.in"},"outputs":{"out":"bank.out"}}}}}`

// Who watches a tree gets its picture, and then what has changed: absolute values by their index.
func TestWatchTree(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/graphs", shop).is(http.StatusCreated, nil)
	var p api.LivePicture
	var total, waiting int64
	s.listen("/v1/jobs/shop/live", "", func(e event) bool {
		switch e.kind {
		case "snapshot":
			enginetest.Check(t, json.Unmarshal(e.data, &p))
			s.ask("POST", "/v1/jobs/shop/ports/in/in/messages", `{"messages":[1,2,3]}`).is(http.StatusOK, nil)
		case "change":
			var c api.LiveChanges
			enginetest.Check(t, json.Unmarshal(e.data, &c))
			for i, edge := range c.Edges {
				if p.Nodes.Kind[p.Edges.To[edge]] == 3 {
					total, waiting = c.Total[i], c.Waiting[i]
				}
			}
		}
		return waiting == 3 && total == 3
	})
	if want := []string{"in.in", "out.out", "shop/a", "shop/pay", "shop/pay/bank"}; !slices.Equal(slices.Sorted(slices.Values(p.Nodes.ID)), want) {
		t.Errorf("nodes %q, want %q", p.Nodes.ID, want)
	}
	bank := slices.Index(p.Nodes.ID, "shop/pay/bank")
	pay := slices.Index(p.Nodes.ID, "shop/pay")
	if p.Nodes.Parent[bank] != pay || !p.Nodes.Frame[pay] || p.Nodes.Fold[pay] != "close shop/pay" {
		t.Errorf("bank is in %d, pay %d has the fold %q", p.Nodes.Parent[bank], pay, p.Nodes.Fold[pay])
	}
	for i, to := range p.Edges.To {
		if to == bank && p.Edges.Limit[i] != 7 {
			t.Errorf("the edge to bank has the limit %d, want 7", p.Edges.Limit[i])
		}
		if len(p.Edges.Points[i]) < 4 {
			t.Errorf("edge %d has %d points", i, len(p.Edges.Points[i])/2)
		}
	}
}

// A folded subgraph is one box, and what waits in it is shown in front of it.
func TestWatchFoldedTree(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/graphs", shop).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/queues/default/pause", nil).is(http.StatusOK, nil)
	s.listen("/v1/jobs/shop/live?toggle=shop%2Fpay", "", func(e event) bool {
		var p api.LivePicture
		if err := json.Unmarshal(e.data, &p); err != nil || e.kind != "snapshot" {
			t.Fatalf("%s: %v", e.kind, err)
		}
		pay := slices.Index(p.Nodes.ID, "shop/pay")
		if slices.Contains(p.Nodes.ID, "shop/pay/bank") || p.Nodes.Frame[pay] || p.Nodes.Fold[pay] != "open shop/pay" {
			t.Errorf("nodes %q, fold %q", p.Nodes.ID, p.Nodes.Fold[pay])
		}
		if len(p.Edges.From) != 3 {
			t.Errorf("%d edges, want 3", len(p.Edges.From))
		}
		return true
	})
}

// Children that runs spawned are one box when they are many, also if each is a graph; it opens into one for each, and folds again.
func TestWatchSpawned(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	const wide = `{"alias":"wide","graph":{"weir":1,"name":"wide","nodes":{"all":{"type":"each","args":{"type":"delay","args":{"by":"1h"}}}},"inputs":{"in":"all.in"},"outputs":{"out":"all.out"}}}`
	s.ask("POST", "/v1/graphs", wide).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/wide/ports/in/in/messages", `{"messages":[1,2,3,4]}`).is(http.StatusOK, nil)
	folds := func(path, node string) (fold string) {
		s.listen(path, "", func(e event) bool {
			var p api.LivePicture
			enginetest.Check(t, json.Unmarshal(e.data, &p))
			if i := slices.Index(p.Nodes.ID, node); i >= 0 && e.kind == "snapshot" {
				fold = p.Nodes.Fold[i]
			}
			return fold != ""
		})
		return fold
	}
	const several = "wide/all/each_item \u00d7"
	if fold := folds("/v1/jobs/wide/live", several); fold != "open "+several {
		t.Errorf("the box of all has the fold %q", fold)
	}
	if fold := folds("/v1/jobs/wide/live?toggle="+url.QueryEscape(several), "wide/all"); fold != "close "+several {
		t.Errorf("the job that spawned them has the fold %q", fold)
	}
}

// All who watch one tree share one reading, and nobody reads after the last has gone.
func TestWatchersShare(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/graphs", shop).is(http.StatusCreated, nil)
	s.listen("/v1/jobs/shop/live", "", func(event) bool {
		s.listen("/v1/jobs/shop/live", "", func(event) bool {
			if n := s.api.Watched(); n != 1 {
				t.Errorf("%d trees are read for two who watch one, want 1", n)
			}
			return true
		})
		return true
	})
	enginetest.Until(t, "nothing to be read", func() bool { return s.api.Watched() == 0 })
	s.ask("GET", "/v1/jobs/nobody/live", nil).is(http.StatusNotFound, nil)
}

// A dead letter is requeued with other messages in place of its own, at once.
func TestRequeueEdited(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":{"weir":1,"nodes":{"a":{"type":"map","args":{"expr":"it.price + 1"},"failure":"dead_letter"}},"inputs":{"in":"a.in"},"outputs":{"out":"a.out"}}}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[{"cost":3}]}`).is(http.StatusOK, nil)
	var dead api.DeadLetters
	enginetest.Until(t, "a dead letter", func() bool {
		s.ask("GET", "/v1/dead?job=g", nil).is(http.StatusOK, &dead)
		return len(dead.Letters) == 1
	})
	edited := map[string]any{"job": "g", "messages": map[string]any{"in": map[string]any{"price": 3}}}
	s.ask("POST", "/v1/dead/requeue", edited).refuses(http.StatusUnprocessableEntity, "usage", "name it in letters")
	edited["letters"] = []string{dead.Letters[0].ID}
	var done api.Settled
	s.ask("POST", "/v1/dead/requeue", edited).is(http.StatusOK, &done)
	if done.Done != 1 || done.Error != "" {
		t.Fatalf("requeued: %+v", done)
	}
	var m api.Messages
	enginetest.Until(t, "what came of it", func() bool {
		s.ask("GET", "/v1/jobs/g/ports/out/out/messages", nil).is(http.StatusOK, &m)
		return len(m.Messages) == 1
	})
	if string(m.Messages[0].Data) != "4" {
		t.Errorf("the job wrote %s, want 4", m.Messages[0].Data)
	}
}

// Who watches a tree is told how many dead letters each job has, and a folded graph those of all in it; also when they go.
func TestWatchDeadLetters(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":{"weir":1,"name":"g","nodes":{"a":{"type":"map","args":{"expr":"it"}},"sub":{"type":"part"}},"edges":["a.out -> sub.in"],"inputs":{"in":"a.in"},"graphs":{"part":{"nodes":{"m":{"type":"map","args":{"expr":"it + 1"},"failure":"dead_letter"}},"inputs":{"in":"m.in"}}}}}`).is(http.StatusCreated, nil)
	for _, path := range []struct{ url, node string }{{"/v1/jobs/g/live", "g/sub/m"}, {"/v1/jobs/g/live?toggle=g%2Fsub", "g/sub"}} {
		s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":["x","y"]}`).is(http.StatusOK, nil)
		var p api.LivePicture
		var told []int64
		s.listen(path.url, "", func(e event) bool {
			switch e.kind {
			case "snapshot":
				enginetest.Check(t, json.Unmarshal(e.data, &p))
			case "change":
				var c api.LiveChanges
				enginetest.Check(t, json.Unmarshal(e.data, &c))
				for i, node := range c.Nodes {
					p.Nodes.Dead[node] = c.Dead[i]
				}
			}
			n := p.Nodes.Dead[slices.Index(p.Nodes.ID, path.node)]
			if p.Nodes.Dead[slices.Index(p.Nodes.ID, "g/a")] != 0 {
				t.Errorf("%s: job a has dead letters", path.url)
			}
			if n == 2 && !slices.Contains(told, n) {
				s.ask("POST", "/v1/dead/discard", `{"job":"g"}`).is(http.StatusOK, nil)
			}
			told = append(told, n)
			return n == 0 && slices.Contains(told, 2)
		})
	}
}
