// Package weirtest runs workers in tests: with the real engine and the real store on a
// Redis in the process, without servers, goroutines or sleep, in milliseconds.
//
//	e := weirtest.New(t, &Square{})
//	h := e.StartWorker(&Square{})
//	e.Feed(h, "in", 1, 2, 3)
//	e.RunUntilQuiet()
//	got := weirtest.Drain[int](e, h, "out") // 1, 4, 9
//
// Nothing runs but when the test says so, and then one job after the other in the order
// in which they became ready: a test does the same each time. That includes the IDs of
// the jobs and all times that Weir records, which come from a clock that begins at
// [Epoch] and stands still until the test lets time pass with [Engine.Advance]. Only
// time.Now in a worker is the machine's.
//
// Whatever goes wrong fails the test at once. An Engine belongs to the test's goroutine.
package weirtest
