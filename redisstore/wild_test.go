package redisstore_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wildly goes through histories of twins, and returns what the first ones have counted. The environment may ask for others: WILD
// is the first seed and how many, EVERY after how many steps all is compared, PATCHES=1 has graphs patched, too: that wakes jobs
// in the order of a map of Go, so that the order of ready jobs may differ.
func wildly(t *testing.T, all func(*testing.T, uint64) *twins, how ...func(*wild)) (runs, rows int64) {
	t.Helper()
	from, n := uint64(0), uint64(5)
	if v := os.Getenv("WILD"); v != "" {
		_, _ = fmt.Sscanf(v, "%d %d", &from, &n)
	}
	every := 10
	patches := os.Getenv("PATCHES") != ""
	if v := os.Getenv("EVERY"); v != "" {
		every, _ = strconv.Atoi(v)
	}
	patched := 0
	for seed := from; seed < from+n; seed++ {
		w := newWild(t, all(t, seed), seed)
		for _, set := range how {
			set(w)
		}
		for step := range 300 {
			time.Sleep(time.Millisecond)
			last := ""
			switch w.draw.IntN(14) {
			case 0:
				w.plant()
			case 1:
				if w.rows {
					w.plant()
				} else if w.draw.IntN(4) == 0 {
					w.grow()
				}
			case 2:
				w.outside()
			case 3:
				if patches && w.draw.IntN(3) == 0 {
					last = "patch"
					w.patch()
				} else {
					w.outside()
				}
			case 4, 5, 6, 7, 8:
				w.pop()
			default:
				w.end()
			}
			often := every
			if w.rows {
				often *= 3 // to be compared they are records no more
			}
			if step%often != often-1 {
				continue
			}
			a, b := w.seen(w.both[0]), w.seen(w.both[1])
			for range 300 { // what goes on in the background
				if a == b {
					break
				}
				time.Sleep(10 * time.Millisecond)
				a, b = w.seen(w.both[0]), w.seen(w.both[1])
			}
			if a != b {
				t.Fatalf("seed %d, step %d %s: %s", seed, step, last, firstDifference(a, b))
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		patched += w.patched
		done := strings.TrimSuffix(w.both[0].due(w.ids[0]), "due") + "plain"
		for field, n := range map[string]*int64{"rows": &rows, "runs": &runs} {
			more, _ := w.both[0].Redis.HGet(t.Context(), done, field).Int64()
			*n += more
		}
	}
	t.Logf("counted were %d and %d; %d patches", runs, rows, patched)
	return runs, rows
}
