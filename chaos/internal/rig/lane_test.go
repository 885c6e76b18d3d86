package rig

import (
	"maps"
	"testing"
	"time"

	"github.com/weirworks/weir/job"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// sentAll is a lane of n acknowledged messages, one a second after the start.
func sentAll(start time.Time, n int) *lane {
	l := &lane{name: "lane"}
	for i := range n {
		at := start.Add(time.Duration(i+1) * time.Second)
		l.sent = append(l.sent, sending{acked: true, began: at.Add(-time.Millisecond), at: at})
	}
	return l
}

func messages(path string, numbers ...int) (all []crew.Message) {
	for _, n := range numbers {
		all = append(all, crew.Message{N: n, Path: path})
	}
	return all
}

// The checker sees what is lost, repeated, out of order or made up, and forgives what it must.
func TestLaneCheck(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		got     []crew.Message
		unknown int // this message's outcome was not heard
		outage  *outage
		want    map[string]int
	}{
		"all":                   {got: messages(">a>", 1, 2, 3, 4, 5)},
		"one is missing":        {got: messages(">a>", 1, 2, 4, 5), want: map[string]int{"lost": 1}},
		"one comes twice":       {got: messages(">a>", 1, 2, 3, 4, 5, 5), want: map[string]int{"duplicated": 1, "reordered": 1}},
		"two change places":     {got: messages(">a>", 1, 3, 2, 4, 5), want: map[string]int{"reordered": 1}},
		"one was never sent":    {got: messages(">a>", 1, 2, 3, 4, 5, 6), want: map[string]int{"duplicated": 1}},
		"all on the wrong way":  {got: messages(">b>", 1, 2, 3, 4, 5), want: map[string]int{"lost": 5}},
		"unknown did not come":  {got: messages(">a>", 1, 2, 4, 5), unknown: 3},
		"unknown came late":     {got: messages(">a>", 1, 2, 4, 5, 3), unknown: 3},
		"unknown came twice":    {got: messages(">a>", 1, 2, 3, 4, 5, 3), unknown: 3, want: map[string]int{"duplicated": 1}},
		"lost in an outage":     {got: messages(">a>", 1, 2, 5), outage: &outage{at(2.5), at(4.5)}},
		"with a hole in it":     {got: messages(">a>", 1, 2, 4, 5), outage: &outage{at(2.5), at(4.5)}, want: map[string]int{"lost": 1}},
		"lost before an outage": {got: messages(">a>", 1, 4, 5), outage: &outage{at(2.5), at(3.5)}, want: map[string]int{"lost": 1}},
	} {
		r, l := &rig{}, sentAll(start, 5)
		if c.unknown > 0 {
			l.sent[c.unknown-1].acked = false
		}
		if c.outage != nil {
			r.outages = []outage{*c.outage}
		}
		l.check(r, c.got, []string{">a>"})
		if got := r.report.Bad(); !maps.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// A job that is to say certain numbers is found out if it does not.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got  []int
		want map[string]int
	}{
		"all":         {got: []int{1, 2, 3}},
		"one missing": {got: []int{1, 3}, want: map[string]int{"lost": 1}},
		"one twice":   {got: []int{1, 2, 2, 3}, want: map[string]int{"duplicated": 1}},
		"one too far": {got: []int{1, 2, 3, 4}, want: map[string]int{"duplicated": 1}},
		"backwards":   {got: []int{1, 3, 2}, want: map[string]int{"reordered": 1}},
	} {
		r := &rig{}
		r.numbers(name, messages("", c.got...), upTo(3))
		if got := r.report.Bad(); !maps.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// Keys that belong to nothing are found.
func TestStray(t *testing.T) {
	t.Parallel()
	const id = "018f4e2a-0000-7000-8000-000000000001"
	key := "weir:{chaos:3}:j:" + id
	ks := &keyspace{jobs: map[job.ID]map[string]string{id: {"status": "suspended", "i.in": "0"}}}
	for key, stray := range map[string]bool{
		key: false, key + ":s": false, key + ":i:in": false, key + ":i:no": true, key + ".1": true, key + ".1:s": true,
		"weir:{chaos:3}:t:" + id: false, "weir:{chaos:3}:l:" + id[:35] + "2": true,
		"weir:{chaos:3}:due": false, "weir:{chaos:3}:outbox": true, "weir:{chaos:3}:other": true,
		"weir:{chaos}:meta": false, "weir:{chaos}:aliases:" + id: false, "weir:{chaos}:aliases:" + id + ".7": true, "weir:{chaos}:other": true,
	} {
		if why := ks.stray(key); (why != "") != stray {
			t.Errorf("%s: %q", key, why)
		}
	}
}
