package store

import (
	"math/bits"
	"time"
)

// Activity counts what runs did: those of an engine since it started, or those of a namespace in a span of time.
type Activity struct {
	At      time.Time // when the span began, by the store's clock
	Runs    int64     // that were committed
	Failed  int64     // of these, those that failed: they are tried again, or their message is put aside, or their job has failed
	Read    int64     // messages
	Written int64     // messages
	// Waited is for how long jobs were queued before their runs began. Runs that followed others in one commit never were.
	Waited Durations
	Took   Durations // the code of runs
}

// ActivitySpan is for how long activities of a namespace are counted together, and ActivitySpans how many of these are kept.
const (
	ActivitySpan  = 10 * time.Second
	ActivitySpans = 90
)

// Recent sums up the last two spans of a namespace's activities, the second of which is not over yet: At says since when.
func Recent(all []Activity, now time.Time) Activity {
	sum := Activity{At: now.Truncate(ActivitySpan).Add(-ActivitySpan)}
	for i := range all {
		if !all[i].At.Before(sum.At) {
			sum.Add(&all[i])
		}
	}
	return sum
}

// Add adds what another one counted.
func (a *Activity) Add(b *Activity) {
	a.Runs += b.Runs
	a.Failed += b.Failed
	a.Read += b.Read
	a.Written += b.Written
	for i := range b.Waited {
		a.Waited[i] += b.Waited[i]
		a.Took[i] += b.Took[i]
	}
}

// Durations counts durations by their size: below 0.25 ms, below 0.5 ms, below 1 ms and so on, twice as long each. The last has all that
// are longer, from two minutes on. As JSON it is the median and the 95th percentile, in seconds.
type Durations [20]int64

// shortest is the bound of the first of them.
const shortest = 250 * time.Microsecond

// DurationIndex tells where in Durations one is counted.
func DurationIndex(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/shortest)), len(Durations{})-1) //nolint:gosec // it is not negative
}

// Quantile returns about how long the share q of all durations took at most, 0 if none was counted: within those of one size they
// are taken for evenly spread.
func (d *Durations) Quantile(q float64) time.Duration {
	var all int64
	for _, n := range d {
		all += n
	}
	rank, below := q*float64(all), 0.0
	low, high := time.Duration(0), shortest
	for i, n := range d {
		if n > 0 && below+float64(n) >= rank {
			if i == len(d)-1 {
				return low
			}
			return low + time.Duration(float64(high-low)*(rank-below)/float64(n))
		}
		below += float64(n)
		low, high = high, 2*high
	}
	return 0
}
