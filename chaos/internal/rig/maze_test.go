package rig

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// Each random graph is one that Weir takes, and all kinds of stages are drawn.
func TestMazePlans(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(300) {
		m, g := newMaze(rand.New(rand.NewPCG(seed, 1)).IntN) //nolint:gosec // to be repeatable
		p, err := g.Plan()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, n := range p.Nodes {
			kinds[n.Type]++
		}
		if len(m.must) == 0 {
			t.Errorf("seed %d: no message comes out", seed)
		}
	}
	for _, kind := range []string{"Loop", "Moody", "Broken", "Fussy", "Unwrap", "Relay"} {
		if kinds[kind] == 0 {
			t.Errorf("no graph has a %s: %v", kind, kinds)
		}
	}
}

// The checker sees what did not come out of a random graph as it should.
func TestMazeCompare(t *testing.T) {
	t.Parallel()
	all := func() (got []crew.Message) {
		for n := range 6 {
			got = append(got, crew.Message{N: n + 1, Path: ">a_1>d"}, crew.Message{N: n + 1, Path: ">a_1>f>d"})
		}
		got[9].Path = ">a_1>u>d" // the fifth
		return got
	}
	for name, c := range map[string]struct {
		change func(got []crew.Message) []crew.Message
		want   map[string]int
	}{
		"all":                {func(got []crew.Message) []crew.Message { return got }, nil},
		"a letter of others": {func(got []crew.Message) []crew.Message { got[3].Path = ">a_1>u>d"; return got }, nil},
		"one is missing":     {func(got []crew.Message) []crew.Message { return got[1:] }, map[string]int{"lost": 1}},
		"both ways":          {func(got []crew.Message) []crew.Message { return append(got, crew.Message{N: 6, Path: ">a_1>u>d"}) }, map[string]int{"duplicated": 1}},
		"on an unknown way":  {func(got []crew.Message) []crew.Message { got[0].Path = ">b>d"; return got }, map[string]int{"lost": 1, "duplicated": 1}},
		"change places":      {func(got []crew.Message) []crew.Message { got[0], got[2] = got[2], got[0]; return got }, map[string]int{"reordered": 1}},
		"was not handled":    {func(got []crew.Message) []crew.Message { got[9].Path = ">a_1>f>d"; return got }, map[string]int{"wrong_state": 1}},
	} {
		r := &rig{}
		f := &mazeRun{maze: &maze{must: []string{">a>d"}, either: [][2]string{{">a>f>d", ">a>u>d"}}}, lane: *sentAll(time.Now(), 6)}
		f.compare(r, c.change(all()))
		if got := r.report.Bad(); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
