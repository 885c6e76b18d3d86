package lab_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
)

func TestItems(t *testing.T) {
	for _, i := range []int{0, 7, 123_456_789} {
		item := lab.Item(i)
		if n, err := lab.Number(item); len(item)+2 != 100 || err != nil || n != i {
			t.Errorf("item %d is %q: %d, %v", i, item, n, err)
		}
	}
	for _, bad := range []string{"", "7", lab.Item(7) + "x", strings.Replace(lab.Item(7), "x", "y", 1), "a" + lab.Item(7)[1:]} {
		if n, err := lab.Number(bad); err == nil {
			t.Errorf("%q is taken for item %d", bad, n)
		}
	}
}

func TestInOrder(t *testing.T) {
	items := func(numbers ...int) []string {
		var out []string
		for _, i := range numbers {
			out = append(out, lab.Item(i))
		}
		return out
	}
	for _, c := range []struct {
		items []string
		says  string
	}{
		{items(4, 5, 6), ""},
		{items(4, 5), "2 messages came out, and 3 went in"},
		{items(4, 6, 5), "message 6 came out where 5 belongs"},
		{items(4, 5, 5), "message 5 came out where 6 belongs"},
		{[]string{lab.Item(4), "five", lab.Item(6)}, "not one of the messages"},
	} {
		err := lab.InOrder(c.items, 4, 3)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.says, err)
		}
	}
}

func TestLedger(t *testing.T) {
	l := lab.NewLedger(6, 3) // two rows
	for _, i := range []int{1, 0, 3, 4, 2} {
		l.Arrived(lab.Item(i))
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.Wait(short); err == nil || !strings.Contains(err.Error(), "1 of 6 items have not arrived") {
		t.Errorf("before the last arrived: %v", err)
	}
	l.Arrived(lab.Item(5))
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Once(); err != nil || l.Late() != 1 {
		t.Errorf("%v, %d late instead of 1", err, l.Late())
	}
	l.Arrived(lab.Item(5))
	if err := l.Once(); err == nil {
		t.Error("an item that arrives twice is not noticed")
	}
	l.Arrived(lab.Item(6))
	if err := l.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "message 6 arrived, and only 6 were sent") {
		t.Errorf("an item that nobody sent: %v", err)
	}
}

func TestLedgerTellsWhen(t *testing.T) {
	l := lab.NewLedger(3, 3)
	before := time.Now()
	go l.Arrived(lab.Item(2))
	if at, err := l.WaitFor(t.Context(), 2); err != nil || at.Before(before) {
		t.Errorf("%v, %v", at, err)
	}
}

func TestPercentiles(t *testing.T) {
	var times lab.Times
	for i := range 100 {
		times = append(times, time.Duration(100-i))
	}
	for p, want := range map[int]time.Duration{50: 50, 99: 99, 100: 100} {
		if got := times.Percentile(p); got != want {
			t.Errorf("%d%%: %d instead of %d", p, got, want)
		}
	}
	if got := times[:1].Percentile(50); got != 100 {
		t.Errorf("of one: %d", got)
	}
	figures := times.Figures("wake")
	names := []string{figures[0].Name, figures[1].Name}
	if !slices.Equal(names, []string{"wake.p50", "wake.p99"}) || !figures[0].Less {
		t.Errorf("figures are %v", figures)
	}
}
