package delivery

import (
	"context"
	"strconv"
	"strings"
	"sync"
)

// dues is what was told of that will be due, until whoever sweeps asks for it.
type dues struct {
	more chan struct{} // gets a value when something is told

	mu    sync.Mutex
	all   bool          // something is, nobody knows where
	first map[int]int64 // in a shard: when the first, in ms by Redis's clock
}

func newDues() *dues { return &dues{more: make(chan struct{}, 1), first: map[int]int64{}} }

// tell notes a text: "<shard> <ms>", or anything else for what nobody knows.
func (d *dues) tell(text string) {
	shard, ms, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(shard)
	at, err2 := strconv.ParseInt(ms, 10, 64)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || err2 != nil {
		d.all = true
	} else if before, known := d.first[n]; !known || at < before {
		d.first[n] = at
	}
	select {
	case d.more <- struct{}{}:
	default: // it will ask anyway
	}
}

func (d *dues) ask() (first map[int]int64, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, all = d.first, d.all
	d.first, d.all = map[int]int64{}, false
	return first, all
}

// Due tells those who sweep that something will be due in a shard at a time, in ms by Redis's clock, which they may
// not know of.
func (b *Broker) Due(ctx context.Context, shard int, at int64) {
	text := strconv.Itoa(shard) + " " + strconv.FormatInt(at, 10)
	b.notifier.dues.tell(text)
	b.notifier.publish(ctx, sayDue+" "+text)
}

// DueAnywhere tells those who sweep that something may be due soon in any shard, which they may not know of.
func (b *Broker) DueAnywhere(ctx context.Context) {
	b.notifier.dues.tell("")
	b.notifier.publish(ctx, sayDue)
}

// MoreDue gets a value when Due was called, here or by other processes if this one serves.
func (b *Broker) MoreDue() <-chan struct{} { return b.notifier.dues.more }

// AskedDue returns what Due has told since AskedDue was called: when the first is due in a shard, and whether
// there may be anything in any of them.
func (b *Broker) AskedDue() (first map[int]int64, all bool) { return b.notifier.dues.ask() }
