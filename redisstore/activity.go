package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
)

// fields are the counters of an activity, in the order in which they are packed.
func fields(a *store.Activity) []*int64 {
	all := []*int64{&a.Runs, &a.Failed, &a.Read, &a.Written}
	for i := range a.Waited {
		all = append(all, &a.Waited[i])
	}
	for i := range a.Took {
		all = append(all, &a.Took[i])
	}
	return all
}

// packActivity writes the counters with spaces between them.
func packActivity(a *store.Activity) string {
	var b []byte
	for i, f := range fields(a) {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, *f, 10)
	}
	return string(b)
}

// activities reads what the spans of the last while hold, the oldest first. In front of the counters stands the number of the span
// since 1970.
func activities(packed map[string]string, now time.Time) ([]store.Activity, error) {
	var all []store.Activity
	oldest := now.Add(-store.ActivitySpans * store.ActivitySpan)
	for slot, text := range packed {
		var a store.Activity
		var number int64
		counters := append([]*int64{&number}, fields(&a)...)
		words := strings.Fields(text)
		if len(words) != len(counters) {
			return nil, fmt.Errorf("the activity of span %s in Redis has %d numbers in place of %d", slot, len(words), len(counters))
		}
		for i, w := range words {
			n, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the activity of span %s in Redis: %w", slot, err)
			}
			*counters[i] = n
		}
		if a.At = time.UnixMilli(number * store.ActivitySpan.Milliseconds()).UTC(); a.At.After(oldest) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b store.Activity) int { return a.At.Compare(b.At) })
	return all, nil
}
