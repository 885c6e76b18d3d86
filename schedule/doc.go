// Package schedule computes when something runs next. A [Schedule] is a text in one of
// several dialects, a time zone, and nothing else: it has no clock, and it can be stored.
//
//	kind      looks like                                what it is
//	cron      30 9 * * MON-FRI                          five fields, or six with seconds first
//	cron7     2014 3 * 0/2,3 9-17 * */5                 year month day weekday hour minute second
//	every     1h30m                                     a fixed time between two runs
//	repeat    FINISHED, +1 DAY, START OF DAY, +4 HOURS  moments of the last run, changed step by step
//	at        2026-03-12T07:00:00Z                      once
//	rrule     FREQ=MONTHLY;BYDAY=-1FR                   RFC 5545, the language of calendars
//	natural   every weekday at 9am                      English, for people
//
// # Clocks that change
//
// Dialects with a zone follow the clocks of that zone. Where they are put forward, the times
// in the gap do not exist; where they are put back, the times in the fold come twice.
//
//   - A schedule of fixed times fires once a day for each of them: in a gap right after it, in
//     a fold the first time. Times of a gap that fall together fire once.
//   - A schedule whose hour field begins with * follows the time that passes: nothing fires in
//     a gap, and both passes of a fold count. So do recurrence rules by the hour, minute or
//     second.
//   - every counts the time that passes, and knows no zone.
//   - A recurrence rule by the day or longer puts a time in a gap off by the length of the gap,
//     as RFC 5545 says: 02:30 becomes 03:30.
//
// docs/schedules.md describes each dialect.
package schedule
