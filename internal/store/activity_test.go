package store_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	var d store.Durations
	if q := d.Quantile(.5); q != 0 {
		t.Errorf("median of none: %s", q)
	}
	for d, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 249 * time.Microsecond: 0, 250 * time.Microsecond: 1, 499 * time.Microsecond: 1, 500 * time.Microsecond: 2,
		time.Millisecond: 3, time.Second: 12, time.Minute: 18, 66 * time.Second: 19, 24 * time.Hour: 19,
	} {
		if got := store.DurationIndex(d); got != want {
			t.Errorf("%s is counted as %d, want %d", d, got, want)
		}
	}
	for range 90 {
		d[store.DurationIndex(3*time.Millisecond)]++ // 2 to 4 ms
	}
	for range 10 {
		d[store.DurationIndex(100*time.Millisecond)]++ // 64 to 128 ms
	}
	if p50, p95 := d.Quantile(.5), d.Quantile(.95); p50 < 3*time.Millisecond || p50 > 4*time.Millisecond || p95 != 96*time.Millisecond {
		t.Errorf("median %s, 95th percentile %s", p50, p95)
	}
	d[len(d)-1] = 1e6
	if p := d.Quantile(.99); p != 65536*time.Millisecond {
		t.Errorf("of what has no upper bound: %s", p)
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_005, 0).UTC()
	at := func(s int64) time.Time { return time.Unix(1_000_000+s, 0).UTC() }
	all := []store.Activity{{At: at(-20), Runs: 7}, {At: at(-10), Runs: 2, Failed: 1, Read: 5}, {At: at(0), Runs: 1, Written: 3}}
	if got, want := store.Recent(all, now), (store.Activity{At: at(-10), Runs: 3, Failed: 1, Read: 5, Written: 3}); got != want {
		t.Errorf("recent: %+v", got)
	}
	if got := store.Recent(nil, now); got != (store.Activity{At: at(-10)}) {
		t.Errorf("of none: %+v", got)
	}
}
