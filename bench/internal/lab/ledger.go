package lab

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Ledger counts numbered items that arrive, and when. It may be written to by any goroutine,
// and waited for by one.
type Ledger struct {
	mu    sync.Mutex
	at    []time.Time // when each arrived first
	left  int
	twice int
	late  int
	row   int   // that many numbers make a row
	last  []int // the highest number of each row so far
	wrong error
	news  chan struct{}
}

// NewLedger returns a ledger for the items below n, in rows of that many numbers.
func NewLedger(n, row int) *Ledger {
	last := make([]int, (n+row-1)/row)
	for i := range last {
		last[i] = -1
	}
	return &Ledger{at: make([]time.Time, n), left: n, row: row, last: last, news: make(chan struct{}, 1)}
}

// Arrived notes an item that arrives now.
func (l *Ledger) Arrived(item string) {
	now := time.Now()
	l.mu.Lock()
	err := l.note(item, now)
	tell := l.left == 0 || len(l.at) == l.row
	l.mu.Unlock()
	if err != nil {
		l.Wrong(err)
	} else if tell {
		l.tell()
	}
}

// Wrong ends all waiting with an error; the first counts.
func (l *Ledger) Wrong(err error) {
	l.mu.Lock()
	if l.wrong == nil {
		l.wrong = err
	}
	l.mu.Unlock()
	l.tell()
}

func (l *Ledger) tell() {
	select {
	case l.news <- struct{}{}:
	default: // who waits has not yet looked at the news before
	}
}

func (l *Ledger) note(item string, now time.Time) error {
	i, err := Number(item)
	if err != nil {
		return err
	}
	if i >= len(l.at) {
		return fmt.Errorf("message %d arrived, and only %d were sent", i, len(l.at))
	}
	if !l.at[i].IsZero() {
		l.twice++
		return nil
	}
	l.at[i] = now
	l.left--
	if row := i / l.row; i < l.last[row] {
		l.late++
	} else {
		l.last[row] = i
	}
	return nil
}

// Wait returns when all items have arrived.
func (l *Ledger) Wait(ctx context.Context) error {
	return l.wait(ctx, func() bool { return l.left == 0 })
}

// WaitFor returns when an item has arrived, and the time at which it did.
func (l *Ledger) WaitFor(ctx context.Context, i int) (at time.Time, err error) {
	err = l.wait(ctx, func() bool {
		at = l.at[i]
		return !at.IsZero()
	})
	return at, err
}

func (l *Ledger) wait(ctx context.Context, done func() bool) error {
	for {
		l.mu.Lock()
		err, ok, left := l.wrong, done(), l.left
		l.mu.Unlock()
		if err != nil || ok {
			return err
		}
		select {
		case <-l.news:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d items have not arrived: %w", left, len(l.at), context.Cause(ctx))
		}
	}
}

// Once returns an error if an item arrived more than once.
func (l *Ledger) Once() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.twice > 0 {
		return fmt.Errorf("%d items arrived more than once", l.twice)
	}
	return nil
}

// Late is how many items arrived behind later ones of their row.
func (l *Ledger) Late() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}
