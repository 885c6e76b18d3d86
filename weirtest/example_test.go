package weirtest_test

import (
	"fmt"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/weirtest"
)

// A test passes its *testing.T. Jobs run when it says so.
func Example() {
	t := new(stub)
	defer t.end()

	e := weirtest.New(t, &Times{})
	h := e.StartWorker(&Times{By: 3})
	e.Feed(h, "in", 1, 2, 3)
	e.RunUntilIdle()

	fmt.Println(weirtest.Drain[int](e, h, "out"))
	fmt.Println(weirtest.State[int](e, h, "seen"), e.Status(h))
	// Output:
	// [3 6 9]
	// 3 completed
}

// A graph is started as it is in production.
func ExampleEngine_Start() {
	t := new(stub)
	defer t.end()

	e := weirtest.New(t, &Times{}, &Total{})
	h := e.Start(pipeline(2))
	e.Feed(h, "numbers", 1, 2, 3)
	e.RunUntilIdle()
	fmt.Println(e.Status(h), e.Status(e.Child(h, "times_1")), e.Status(e.Child(h, "total")))

	e.CloseIn(h, "numbers")
	e.RunUntilIdle()
	fmt.Println(e.Status(h), weirtest.Drain[int](e, h, "sum"))
	// Output:
	// suspended suspended suspended
	// completed [60]
}

// Mail tries six times, and waits a minute, two, four and so on in between. Five retries
// take half an hour, which the test does not.
func ExampleEngine_Advance() {
	t := new(stub)
	defer t.end()

	e := weirtest.New(t, &Mail{})
	h := e.StartWorker(&Mail{})
	e.Feed(h, "text", "hello")
	e.RunUntilIdle()
	fmt.Println(e.Status(h), "after", len(e.Failures(h)), "failure")

	e.Advance(time.Hour)
	fmt.Println(e.Status(h))
	for _, f := range e.Failures(h) {
		fmt.Println(f.At.Format(time.TimeOnly), f.Error)
	}
	// Output:
	// scheduled after 1 failure
	// failed
	// 00:31:00 the server does not answer
	// 00:15:00 the server does not answer
	// 00:07:00 the server does not answer
	// 00:03:00 the server does not answer
	// 00:01:00 the server does not answer
	// 00:00:00 the server does not answer
}

// What cannot be worked on is put aside as a dead letter, which prints as JSON; nothing has come out meanwhile.
func ExampleEngine_Empty() {
	t := new(stub)
	defer t.end()

	e := weirtest.New(t, &Mail{})
	g := graph.New("letters")
	mail := graph.Add(g, "mail", &Mail{}, graph.Tries(1), graph.OnFailure(job.DeadLetter))
	graph.Connect(graph.Input[string](g, "text"), mail.Text)
	h := e.Start(g)
	e.Feed(h, "text", "hello")
	e.RunUntilIdle()
	for _, letter := range weirtest.Drain[job.Letter](e, e.Child(h, "mail"), job.ErrorsPort) {
		fmt.Println(letter)
	}
	e.Empty(e.Child(h, "mail"), job.ErrorsPort)
	// Output:
	// {"job":"019b76da-a800-7000-8000-000000000001.1","error":"the server does not answer","at":"2026-01-01T00:00:00Z","messages":{"text":"hello"}}
}
