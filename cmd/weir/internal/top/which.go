package top

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

func sameFilter(a, b job.Filter) bool { return reflect.DeepEqual(a, b) }

// listed tells whether a filter leaves something out, or lists jobs below others too.
func listed(f *job.Filter) bool {
	return len(f.Status) > 0 || f.Type != "" || f.Queue != "" || f.All
}

// relist has the list read anew, as something else is to be listed.
func (m *Model) relist() {
	l := m.list
	l.limit, l.cursor, l.top, l.sel, l.filter = listStep, 0, 0, key{}, ""
	l.stamp, l.picture, l.rows = stamp{}, nil, nil
	clear(l.marked)
}

// statusWords are what jobs can be filtered by.
var statusWords = map[string][]statemachine.Status{
	"failed":     {statemachine.Failed},
	"running":    {statemachine.Running},
	"queued":     {statemachine.Queued},
	"ready":      {statemachine.Queued},
	"waiting":    {statemachine.Waiting},
	"scheduled":  {statemachine.Scheduled},
	"suspended":  {statemachine.Suspended},
	"completed":  {statemachine.Completed},
	"terminated": {statemachine.Terminated, statemachine.Terminating},
	"live":       {statemachine.Queued, statemachine.Scheduled, statemachine.Waiting, statemachine.Running, statemachine.Suspended},
}

// statusCycle is the order in which a key goes through them.
var statusCycle = []string{"", "failed", "running", "ready", "scheduled", "suspended", "completed", "terminated"}

// nextStatus lists the jobs of the next status.
func (m *Model) nextStatus() {
	if m.here != m.list {
		m.say(note, "in a tree / finds by status, too; esc goes back to the list")
		return
	}
	now := slices.IndexFunc(statusCycle, func(word string) bool { return slices.Equal(statusWords[word], m.list.which.Status) })
	m.list.which.Status = statusWords[statusCycle[(now+1)%len(statusCycle)]]
	m.relist()
}

// nextOrder lists the jobs in the next order.
func (m *Model) nextOrder() {
	if m.here != m.list {
		m.say(note, "a tree has an order of its own; esc goes back to the list")
		return
	}
	all := job.Orders()
	now := max(slices.Index(all, m.list.which.Order), 0)
	m.list.which.Order = all[(now+1)%len(all)]
	m.relist()
}

// filterBy filters the list by words: statuses, type=T, queue=Q, all; none at all lists all again.
func (m *Model) filterBy(words []string) error {
	f := job.Filter{Order: m.list.which.Order}
	for _, word := range words {
		name, value, set := strings.Cut(word, "=")
		switch {
		case set && name == "type":
			f.Type = value
		case set && name == "queue":
			f.Queue = value
		case word == "all":
			f.All = true
		case set:
			return fmt.Errorf("filter %s: use a status, type=T, queue=Q or all", clean(word))
		default:
			for one := range strings.SplitSeq(word, ",") {
				statuses := statusWords[one]
				if statuses == nil {
					return errors.New("no status " + clean(one) + ": " + port.Suggest(one, slices.Sorted(maps.Keys(statusWords))))
				}
				f.Status = append(f.Status, statuses...)
			}
		}
	}
	if m.view != viewTree || m.here != m.list {
		m.show(viewTree)
		m.back()
	}
	m.list.which = f
	m.relist()
	return nil
}

// sortWords are the orders of the list by names.
var sortWords = map[string]job.Order{
	"newest": job.Newest, "oldest": job.Oldest, "ran": job.LastRan, "idle": job.FirstRan, "status": job.ByStatus, "type": job.ByType,
}

// sortBy sorts what is shown.
func (m *Model) sortBy(word string) error {
	if names, ok := orders[m.view]; ok {
		n := slices.Index(names, word)
		if n < 0 {
			return fmt.Errorf("%s are not sorted by %s: %s", viewNames[m.view], clean(word), port.Suggest(word, names))
		}
		m.tabs[m.view].order = n
		return nil
	}
	order, ok := sortWords[word]
	if !ok {
		return fmt.Errorf("jobs are not sorted by %s: %s", clean(word), port.Suggest(word, slices.Sorted(maps.Keys(sortWords))))
	}
	m.show(viewTree)
	m.back()
	m.list.which.Order = order
	m.relist()
	return nil
}
