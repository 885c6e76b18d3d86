//go:build unix

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// actions are in the order in which they are counted.
var actions = []Action{Kill, Sleep, Panic, Fails}

// Counters count in memory that processes share: what a process has counted is there when it
// was killed.
type Counters struct {
	cells []int64 // of each point: hits, then how often each action happened
}

const cellSize = 8

// OpenCounters opens the counters in a file, which it makes if it is missing.
func OpenCounters(file string) (*Counters, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n := len(All) * (1 + len(actions))
	if err := f.Truncate(int64(n * cellSize)); err != nil {
		return nil, fmt.Errorf("making room in %s: %w", file, err)
	}
	raw, err := syscall.Mmap(int(f.Fd()), 0, n*cellSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", file, err)
	}
	return &Counters{cells: unsafe.Slice((*int64)(unsafe.Pointer(&raw[0])), n)}, nil
}

func (c *Counters) cell(p Point, n int) *int64 {
	return &c.cells[slices.Index(All, p)*(1+len(actions))+n]
}

// Hits tells how often a point was hit.
func (c *Counters) Hits(p Point) int64 { return atomic.LoadInt64(c.cell(p, 0)) }

// Happened tells how often an action happened at a point.
func (c *Counters) Happened(p Point, a Action) int64 {
	return atomic.LoadInt64(c.cell(p, 1+slices.Index(actions, a)))
}
