package draw_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// family is a job with so many children that its runs spawned.
func family(children int) []*job.Info {
	tree := []*job.Info{{ID: "1", Name: "each", Type: "each", Status: statemachine.Suspended}}
	for n := range children {
		tree = append(tree, &job.Info{ID: job.ID(fmt.Sprintf("1.%d", n)), Name: fmt.Sprintf("item_%d", n), Type: "resize", Parent: "1", Status: statemachine.Completed})
	}
	return tree
}

func ids(p draw.Picture) (all []string) {
	for _, n := range p.Nodes {
		all = append(all, n.ID)
	}
	return all
}

// More children of one type than a view draws are one box, which opens; wires lead to them.
func TestSpawnedChildrenFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		children int
		toggled  string
		nodes    []string
	}{
		{"few", 2, "", []string{"each", "each/item_0", "each/item_1"}},
		{"many", 5, "", []string{"each", "each/resize ×"}},
		{"open", 4, "each/resize ×", []string{"each", "each/item_0", "each/item_1", "each/item_2", "each/item_3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, members := draw.View{Spawned: 3, Spawns: true, Toggled: map[string]bool{c.toggled: true}}.Jobs(family(c.children))
			if got := ids(p); !slices.Equal(got, c.nodes) {
				t.Errorf("nodes %q, want %q", got, c.nodes)
			}
			if len(p.Edges) != len(c.nodes)-1 {
				t.Errorf("%d wires to %d boxes", len(p.Edges), len(c.nodes)-1)
			}
			for _, n := range p.Nodes {
				if status, note := draw.Stand(members[n.ID]); status != n.Status || note != n.Note {
					t.Errorf("%s stands for %s %q, and is drawn as %s %q", n.ID, status, note, n.Status, n.Note)
				}
			}
			jobs := 0
			for _, all := range members {
				jobs += len(all)
			}
			if jobs != c.children+1 {
				t.Errorf("boxes stand for %d jobs, want %d", jobs, c.children+1)
			}
			placed, err := draw.Place(p)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range placed.Edges {
				if len(e.Points) < 2 {
					t.Errorf("wire %d has %d points", i, len(e.Points))
				}
			}
			for _, n := range placed.Nodes {
				if n.X < 0 || n.Y < 0 || n.X+n.W > placed.W || n.Y+n.H > placed.H {
					t.Errorf("%s is outside of the picture: %+v of %d × %d", n.ID, n.Rect, placed.W, placed.H)
				}
			}
		})
	}
}
