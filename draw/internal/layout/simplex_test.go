package layout_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/draw/internal/layout"
)

// drawArcs makes arcs between n items that lead to items of higher numbers.
func drawArcs(t *rapid.T, n, most int) (arcs [][3]int, order []int) {
	for range rapid.IntRange(0, most).Draw(t, "arcs") {
		to := rapid.IntRange(1, n-1).Draw(t, "to")
		arcs = append(arcs, [3]int{rapid.IntRange(0, to-1).Draw(t, "from"), to, rapid.IntRange(0, 3).Draw(t, "weight")})
	}
	for i := range n {
		order = append(order, i)
	}
	return arcs, order
}

// length is the weighted length of all arcs; ok is false if one does not lead to the right.
func length(arcs [][3]int, layers []int) (sum int, ok bool) {
	for _, a := range arcs {
		d := layers[a[1]] - layers[a[0]]
		if d < 1 {
			return 0, false
		}
		sum += a[2] * d
	}
	return sum, true
}

// shortestOf tries all layers.
func shortestOf(n int, arcs [][3]int) (best int) {
	best = -1
	layers := make([]int, n)
	var try func(i int)
	try = func(i int) {
		if i == n {
			if sum, ok := length(arcs, layers); ok && (best < 0 || sum < best) {
				best = sum
			}
			return
		}
		for layers[i] = range n {
			try(i + 1)
		}
	}
	try(0)
	return best
}

// TestShortest: no layers of few items make shorter wires.
func TestShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "n")
		arcs, order := drawArcs(t, n, 8)
		layers := layout.Shortest(n, arcs, order)
		sum, ok := length(arcs, layers)
		if want := shortestOf(n, arcs); !ok || sum != want || slices.Min(layers) != 0 {
			t.Fatalf("layers %v: length %d, %v, want %d", layers, sum, ok, want)
		}
		if again := layout.Shortest(n, arcs, order); !slices.Equal(again, layers) {
			t.Fatalf("%v, then %v", layers, again)
		}
	})
}

// TestShortestOfMany: wires are never longer than with each item as far to the left as it can be, and single items cannot be moved
// so that they become shorter.
func TestShortestOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		arcs, order := drawArcs(t, n, 120)
		layers := layout.Shortest(n, arcs, order)
		sum, ok := length(arcs, layers)
		left := make([]int, n)
		for i := range n {
			for _, a := range arcs {
				if a[1] == i {
					left[i] = max(left[i], left[a[0]]+1)
				}
			}
		}
		if most, _ := length(arcs, left); !ok || sum > most || slices.Min(layers) != 0 {
			t.Fatalf("layers %v: length %d, %v, want from 0 on, and at most %d", layers, sum, ok, most)
		}
		for i := range layers {
			for _, by := range []int{-1, 1} {
				layers[i] += by
				if other, ok := length(arcs, layers); ok && other < sum {
					t.Fatalf("item %d at %d in %v: %d, it was %d", i, layers[i], layers, other, sum)
				}
				layers[i] -= by
			}
		}
	})
}

func BenchmarkShortest(b *testing.B) {
	const n = 10_000
	var arcs [][3]int
	order, random := make([]int, n), rand.New(rand.NewPCG(1, 2))
	for i := range n {
		order[i] = i
		for range min(i, 2) {
			arcs = append(arcs, [3]int{max(i-1-random.IntN(200), 0), i, 1})
		}
	}
	for b.Loop() {
		layout.Shortest(n, arcs, order)
	}
}
