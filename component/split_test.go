package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// smallItems are messages that collide in keys and values.
func smallItems(rt *rapid.T, label string) []string {
	n := rapid.IntRange(0, 12).Draw(rt, label)
	var items []string
	for i := range n {
		k := rapid.IntRange(0, 3).Draw(rt, "key")
		items = append(items, fmt.Sprintf(`{"k":%d,"n":%d,"f":%d.5}`, k, i, k))
	}
	return items
}

// drip feeds the same messages in random portions, with runs and time in between.
func drip(rt *rapid.T, e *weirtest.Engine, c Component, in stream) stream {
	h := e.StartWorker(c)
	left := maps.Clone(in)
	for len(left) > 0 {
		p := rapid.SampledFrom(slices.Sorted(maps.Keys(left))).Draw(rt, "port")
		k := rapid.IntRange(0, len(left[p])).Draw(rt, "messages")
		e.Feed(h, p, raws(left[p][:k])...)
		if left[p] = left[p][k:]; len(left[p]) == 0 {
			e.CloseIn(h, p)
			delete(left, p)
		}
		switch rapid.IntRange(0, 3).Draw(rt, "then") {
		case 0:
			e.RunNext()
		case 1:
			e.RunUntilIdle()
		case 2:
			e.Advance(time.Second)
		}
	}
	e.Advance(time.Minute)
	if s := e.Status(h); s != statemachine.Completed {
		rt.Fatalf("the job is %s: %v", s, e.Failures(h))
	}
	got := outputs(rt, h, outPorts(e, h)...)
	// A completed job that is asked to run again must add nothing.
	if err := h.Run(context.Background()); err != nil {
		rt.Fatal(err)
	}
	e.RunUntilIdle()
	if more := outputs(rt, h, outPorts(e, h)...); len(more) > 0 {
		rt.Fatalf("run again it wrote %v", more)
	}
	return untimed(got)
}

// times are those of windows, which depend on when runs are.
var times = regexp.MustCompile(`"(start|end)":"[^"]*",`)

func untimed(got stream) stream {
	for _, items := range got {
		for i := range items {
			items[i] = times.ReplaceAllString(items[i], "")
		}
	}
	return got
}

// TestSplits: however messages fall into runs, what comes out is the same.
func TestSplits(t *testing.T) {
	t.Parallel()
	ab := []string{"a", "b"}
	sum := json.RawMessage("0")
	for name, c := range map[string]Component{
		"map":            &Map{Expr: "it.n * 2"},
		"filter":         &Filter{Expr: "it.k > 1"},
		"flat_map":       &FlatMap{Expr: "[it.n, it.k]"},
		"route":          &Route{Cases: []Case{{"it.k == 0", "a"}, {"it.k == 1", "b"}}, Default: "c"},
		"tee":            &Tee{To: ab},
		"merge_ordered":  &MergeOrdered{From: ab},
		"merge_sorted":   &MergeSorted{From: ab, By: "it.n"},
		"zip drop":       &Zip{From: ab},
		"zip pad":        &Zip{From: ab, Rest: RestPad},
		"batch":          &Batch{Size: 3},
		"window":         &Window{Count: 3},
		"window step":    &Window{Count: 4, Step: 2},
		"collect":        &Collect{},
		"reduce":         &Reduce{Expr: "acc + it.n / 2", Seed: sum},
		"reduce types":   &Reduce{Expr: "acc % 7 + it.f * 2", Seed: sum}, // whole numbers are integers again
		"reduce list":    &Reduce{Expr: "concat(acc, [it.f * 2])", Seed: json.RawMessage("[]")},
		"reduce each":    &Reduce{Expr: "acc + it.n", Seed: sum, Emit: EmitEach},
		"reduce keys":    &Reduce{Expr: "acc + it.f", Seed: sum, Key: "it.k"},
		"dedupe":         &Dedupe{Key: "it.k"},
		"dedupe forgets": &Dedupe{Key: "it.k", Capacity: 2},
		"delay":          &Delay{By: Duration(time.Second)},
		"throttle":       &Throttle{Rate: 2},
		"gate":           &Gate{Opened: true},
		"debounce":       &Debounce{Wait: Duration(time.Hour)},
		"debounce all":   &Debounce{Wait: Duration(time.Hour), Keep: KeepAll},
		"debounce first": &Debounce{Wait: Duration(time.Hour), Keep: KeepFirst},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, c)
			rapid.Check(t, func(rt *rapid.T) {
				in := stream{}
				switch c.(type) {
				case *MergeOrdered, *MergeSorted, *Zip:
					in["a"], in["b"] = smallItems(rt, "a"), smallItems(rt, "b")
				case *Gate:
					in["in"], in["open"] = smallItems(rt, "in"), nil
				default:
					in["in"] = smallItems(rt, "in")
				}
				want := dripOnce(rt, e, c, in)
				if got := drip(rt, e, c, in); !same(got, want) {
					rt.Fatalf("got  %v\nwant %v", got, want)
				}
			})
		})
	}
}

// dripOnce feeds all at once, and lets time pass.
func dripOnce(rt *rapid.T, e *weirtest.Engine, c Component, in stream) stream {
	h := e.StartWorker(c)
	for p, items := range in {
		e.Feed(h, p, raws(items)...)
		e.CloseIn(h, p)
	}
	e.Advance(time.Minute)
	return untimed(outputs(rt, h, outPorts(e, h)...))
}

// TestJoinAsModel: Join writes what a nested loop finds, however messages fall into runs.
func TestJoinAsModel(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Join{})
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]string{JoinInner, JoinLeft, JoinRight, JoinOuter}).Draw(rt, "kind")
		left, right := smallItems(rt, "left"), smallItems(rt, "right")
		c := &Join{LeftKey: "it.k == 3 ? nil : it.k", RightKey: "it.k == 3 ? nil : it.k", Kind: kind}
		got := drip(rt, e, c, stream{"left": left, "right": right})["out"]
		want := nestedLoop(rt, kind, left, right)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

func nestedLoop(rt *rapid.T, kind string, left, right []string) (out []string) {
	key := func(item string) string {
		var v struct{ K int }
		if err := json.Unmarshal([]byte(item), &v); err != nil {
			rt.Fatal(err)
		}
		if v.K == 3 {
			return "null"
		}
		return fmt.Sprint(v.K)
	}
	row := func(k, l, r string) { out = append(out, fmt.Sprintf(`{"key":%s,"left":%s,"right":%s}`, k, l, r)) }
	met := map[int]bool{}
	for _, l := range left {
		alone := true
		for i, r := range right {
			if key(l) == key(r) && key(l) != "null" {
				row(key(l), l, r)
				met[i], alone = true, false
			}
		}
		if alone && (kind == JoinLeft || kind == JoinOuter) {
			row(key(l), l, "null")
		}
	}
	for i, r := range right {
		if !met[i] && (kind == JoinRight || kind == JoinOuter) {
			row(key(r), "null", r)
		}
	}
	return out
}
