package runner

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
)

// A batch has fewer payloads where they take long, so that several processes, and other engines, have some.
func TestBatchesOfLongPayloads(t *testing.T) {
	t.Parallel()
	l := &lane{queues: map[string][]*task{}, took: map[string]time.Duration{}}
	stored := &handler.Stored{Version: 1}
	for range 300 {
		l.queues["T"] = append(l.queues["T"], &task{handler: stored, options: handler.Options{Batch: 100}})
	}
	for _, step := range []struct {
		took time.Duration // of a payload; 0: none has run
		want int
	}{{0, 4}, {time.Millisecond, 100}, {39 * time.Millisecond, 50}, {10 * time.Second, 1}, {time.Nanosecond, 1}, {time.Nanosecond, 1}, {0, 1}} {
		l.timed("T", pace{one: step.took})
		if got := l.batch("T"); got != step.want {
			t.Errorf("payloads of %s: the next batch has %d, not %d", step.took, got, step.want)
		}
	}
	for range 20 {
		l.timed("T", pace{one: time.Millisecond})
	}
	if got := l.batch("T"); got != 100 {
		t.Errorf("once they take a millisecond again a batch has %d", got)
	}
}

// Payloads of a handler whose process dies of each fifth one do not fail because others' processes died before they came to them.
func TestThoseBehindCrashesRun(t *testing.T) {
	t.Parallel()
	p, err := New(Config{Processes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := &handler.Stored{Type: "dies", Version: 1, Definition: handler.Definition{Lang: handler.Node, Body: "if (payload % 5 == 0) process.exit(3); return payload"}}
	do := func(n int) []handler.Result {
		payloads := make([]Payload, n)
		for i := range payloads {
			payloads[i] = Payload{ID: fmt.Sprint("p", i), Try: 1, Data: []byte(strconv.Itoa(i + 1))}
		}
		results, err := p.Do(t.Context(), h, payloads)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	do(4) // none of which dies: then batches are large
	for n, r := range do(100) {
		if dies := (n+1)%5 == 0; (r.Status == 200) == dies {
			t.Errorf("payload %d: %d %s", n+1, r.Status, r.Error)
		}
	}
}

// A type with beforeEach whose payloads come one by one gets more of them all the same: no batch of several would tell that they are short,
// as long as no more go on than there are processes.
func TestSinglePayloadsWithBeforeEach(t *testing.T) {
	t.Parallel()
	p, err := New(Config{Processes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := &handler.Stored{Type: "single", Version: 1, Definition: handler.Definition{Lang: handler.Node, BeforeEach: "await null", Body: "return 1"}}
	for range 3 {
		if results, err := p.Do(t.Context(), h, []Payload{{ID: "a", Try: 1, Data: []byte("1")}}); err != nil || results[0].Status != 200 {
			t.Fatal(results, err)
		}
	}
	if n := p.enough(h); n < 4 {
		t.Errorf("%d payloads are enough for a second", n)
	}
}

// How long it takes to start a process, or what beforeEach does for a whole batch, does not make payloads long: else few at a time were
// to go on, in small batches, for each of which it is done again.
func TestWhatIsDoneOnceMakesNoPayloadLong(t *testing.T) {
	t.Parallel()
	const wait = "await new Promise((done) => setTimeout(done, 700))"
	for name, d := range map[string]handler.Definition{
		"before":     {Lang: handler.Node, Before: "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700)", Body: "return 1"},
		"beforeEach": {Lang: handler.Node, BeforeEach: wait, Body: "return 1"},
	} {
		p, err := New(Config{Processes: 2})
		if err != nil {
			t.Fatal(err)
		}
		h := &handler.Stored{Type: name, Version: 1, Definition: d}
		for n := range 5 {
			payloads := make([]Payload, n+1)
			for i := range payloads {
				payloads[i] = Payload{ID: string(rune('a' + i)), Try: 1, Data: []byte("1")}
			}
			if results, err := p.Do(t.Context(), h, payloads); err != nil || results[n].Status != 200 {
				t.Fatal(results, err)
			}
		}
		if results, err := p.Do(t.Context(), h, nil); len(results) > 0 || err != nil {
			t.Errorf("of no payloads came %v, %v", results, err)
		}
		if n := p.enough(h); n < 10 {
			t.Errorf("%s: %d payloads are enough for a second", name, n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
