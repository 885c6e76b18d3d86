// Package weirtest runs workers in tests: with the real engine and the real store on a
// Redis in the process, without servers, goroutines or sleep, in milliseconds.
//
//	e := weirtest.New(t, &Square{})
//	h := e.StartWorker(&Square{})
//	e.Feed(h, "in", 1, 2, 3)
//	e.RunUntilIdle()
//	got := weirtest.Drain[int](e, h, "out") // 1, 4, 9
//
// Nothing runs but when the test says so, and then one job after the other in the order
// in which they became ready: a test does the same each time. That includes the IDs of
// the jobs and all times that Weir records, which come from a clock that begins at
// [Epoch] and stands still until the test lets time pass with [Engine.Advance]. Only
// time.Now in a worker is the machine's.
//
// RunUntilIdle and Advance run jobs as an engine in production does: a job may run several times
// before these runs are committed together (run batching), and jobs whose types declare
// worker.Options.Pure run on messages that are not committed yet (chaining). So a test sees what a
// worker that relies on a commit between two runs does, or one that is called pure and is not. Only
// time plays no part: in production runs that take long end a chain and a batch; here that depends on
// numbers alone, and is the same each time. RunNext takes a single step: one run, one commit.
//
// Not exercised are runs of several jobs at a time, crashes, leases and wake-ups.
//
// Whatever goes wrong fails the test at once. An Engine belongs to the test's goroutine.
package weirtest
