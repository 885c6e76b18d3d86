package schedule

import "time"

// A wall time is what clocks show, written as a time in UTC.

// horizon is the last wall time that is looked at: RFC 3339 has years of four digits.
var horizon = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// search finds the first wall time after another that matches a rule, in whole seconds.
type search func(after time.Time) (time.Time, bool)

// wallOf is what clocks show at t.
func wallOf(t time.Time, loc *time.Location) time.Time {
	_, offset := t.In(loc).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// offsetEnd is a moment after t until which the offset of its zone stays the same; zero if it does indefinitely.
func offsetEnd(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if end.IsZero() || end.After(t) {
		return end
	}
	// Package time has the last year of a zone's rule end after 365 days, though it is a leap year.
	if end = end.Add(24 * time.Hour); end.After(t) {
		return end
	}
	return t.Add(time.Second)
}

// onClock is the moment at which clocks show a wall time: in a fold the first. If it is in
// a gap there is none, and gap is the length of it; the moment is the end of the gap.
func onClock(w time.Time, loc *time.Location) (t time.Time, gap time.Duration) {
	if loc == time.UTC {
		return w, 0
	}
	for at := w.Add(-26 * time.Hour); ; {
		at = at.In(loc)
		_, offset := at.Zone()
		end := offsetEnd(at)
		t = w.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || t.Before(end) {
			return t.In(loc), 0
		}
		if after := wallOf(end, loc); w.Before(after) {
			before := end.UTC().Add(time.Duration(offset) * time.Second)
			if gap = after.Sub(before); gap > 0 && !w.Before(before) {
				return end.In(loc), gap
			}
		}
		at = end
	}
}

// passing is the first moment after now at which clocks show a time that matches: one in a
// gap is never shown, one in a fold is shown twice.
func passing(now time.Time, loc *time.Location, find search) (time.Time, bool) {
	at := now.In(loc)
	for after := wallOf(now, loc); ; {
		_, offset := at.Zone()
		end := offsetEnd(at)
		w, ok := find(after)
		if ok {
			t := w.Add(-time.Duration(offset) * time.Second)
			if end.IsZero() || t.Before(end) {
				return t.In(loc), true
			}
		}
		if end.IsZero() {
			return time.Time{}, false
		}
		at = end.In(loc)
		if shown := wallOf(end, loc); shown.After(after) {
			if !ok {
				return time.Time{}, false
			}
			// No time before w matches, so that no change of clocks before it matters.
			if near := w.Add(-48 * time.Hour); near.After(at) {
				at = near.In(loc)
			}
		}
		after = wallOf(at, loc).Add(-time.Second)
	}
}

// fixed is the first moment after now that belongs to a wall time that matches: each has
// one. One in a gap belongs to the end of the gap or, if it is put off, comes later by the length of the gap.
func fixed(now time.Time, loc *time.Location, putOff bool, find search) (time.Time, bool) {
	from := wallOf(now, loc)
	if start, _ := now.In(loc).ZoneBounds(); putOff && !start.IsZero() {
		before, after := wallOf(start.Add(-time.Second), loc).Add(time.Second), wallOf(start, loc)
		if gap := after.Sub(before); gap > 0 && now.Sub(start) < gap {
			from = before.Add(-time.Second) // what was put off may still come
		}
	}
	var best time.Time
	for w, ok := find(from); ok; w, ok = find(w) {
		if !best.IsZero() && !w.Before(wallOf(best, loc)) {
			break
		}
		t, gap := onClock(w, loc)
		if gap > 0 && putOff {
			t, _ = onClock(w.Add(gap), loc)
		}
		if t.After(now) && (best.IsZero() || t.Before(best)) {
			best = t.In(loc)
			if !putOff {
				break
			}
		}
	}
	return best, !best.IsZero()
}
