//go:build failpoints

package failpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled tells whether the program has failpoints.
const Enabled = true

// armed are the orders of this process, by point.
type armed struct {
	mu       sync.Mutex
	orders   map[Point][]Order
	hits     map[Point]int
	chance   *rand.Rand
	counters *Counters // nil: nobody counts
	skew     time.Duration
}

var this = mustArm(os.Getenv("WEIR_FAILPOINTS"), os.Getenv("WEIR_FAILPOINTS_SEED"), os.Getenv("WEIR_FAILPOINTS_COUNTS"), os.Getenv("WEIR_FAILPOINTS_SKEW"))

// mustArm panics if the environment is wrong: a test whose faults do not happen is worse than none.
func mustArm(spec, seed, counts, skew string) *armed {
	a, err := arm(spec, seed, counts, skew)
	if err != nil {
		panic(err) //nolint:forbidigo // as the comment says; only in builds for tests
	}
	return a
}

func arm(spec, seed, counts, skew string) (*armed, error) {
	orders, err := Parse(spec)
	if err != nil {
		return nil, fmt.Errorf("WEIR_FAILPOINTS: %w", err)
	}
	a := &armed{orders: map[Point][]Order{}, hits: map[Point]int{}}
	for _, o := range orders {
		a.orders[o.Point] = append(a.orders[o.Point], o)
	}
	n := uint64(0)
	if seed != "" {
		if n, err = strconv.ParseUint(seed, 10, 64); err != nil {
			return nil, fmt.Errorf("WEIR_FAILPOINTS_SEED: %w", err)
		}
	}
	a.chance = rand.New(rand.NewPCG(n, 0)) //nolint:gosec // faults are to be repeatable
	if counts != "" {
		if a.counters, err = OpenCounters(counts); err != nil {
			return nil, fmt.Errorf("WEIR_FAILPOINTS_COUNTS: %w", err)
		}
	}
	if skew != "" {
		if a.skew, err = time.ParseDuration(skew); err != nil {
			return nil, fmt.Errorf("WEIR_FAILPOINTS_SKEW: %w", err)
		}
	}
	return a, nil
}

// Hit does here what the environment says of the point.
func Hit(p Point) { _ = this.hit(p) }

// Fail does so, too, and returns an error if that is what is to happen.
func Fail(p Point) error { return this.hit(p) }

// Skew is by how much the clock of this process is wrong.
func Skew() time.Duration { return this.skew }

func (a *armed) hit(p Point) error {
	due := a.due(p)
	if a.counters != nil {
		a.counters.add(p, due)
	}
	for _, o := range due {
		switch o.Action {
		case Kill:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal may take a moment
		case Sleep:
			time.Sleep(o.Sleep)
		case Panic:
			panic("failpoint " + string(p)) //nolint:forbidigo // that is what was asked for
		case Fails:
			return fmt.Errorf("failpoint %s", p)
		}
	}
	return nil
}

// due returns the orders that are to be carried out at this hit.
func (a *armed) due(p Point) (due []Order) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hits[p]++
	for _, o := range a.orders[p] {
		if o.Nth == a.hits[p] || o.Nth == 0 && a.chance.IntN(o.OneIn) == 0 {
			due = append(due, o)
		}
	}
	return due
}

// add counts a hit and what happens at it.
func (c *Counters) add(p Point, due []Order) {
	atomic.AddInt64(c.cell(p, 0), 1)
	for _, o := range due {
		atomic.AddInt64(c.cell(p, 1+slices.Index(actions, o.Action)), 1)
	}
}
