package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

// queueEntries are the queues, and below each the types that have ready jobs in it.
func (m *Model) queueEntries(order string) []entry {
	if m.over.stats == nil {
		return nil
	}
	queues := slices.Clone(m.over.stats.Queues)
	slices.SortStableFunc(queues, func(a, b redisstore.QueueInfo) int {
		switch order {
		case "ready":
			return cmp.Compare(b.Pending, a.Pending)
		case "oldest":
			return cmp.Compare(b.Latency, a.Latency)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	var out []entry
	for i := range queues {
		q := &queues[i]
		out = append(out, entry{id: q.Name, queue: q})
		ready := slices.Clone(q.Ready)
		slices.SortStableFunc(ready, func(a, b redisstore.ReadyType) int {
			switch order {
			case "ready":
				return cmp.Compare(b.Jobs, a.Jobs)
			case "oldest":
				return cmp.Compare(b.Oldest, a.Oldest)
			}
			return cmp.Compare(a.Type, b.Type)
		})
		for k := range ready {
			out = append(out, entry{id: q.Name + "\n" + ready[k].Type, queue: q, typ: &ready[k], last: k == len(ready)-1})
		}
	}
	return out
}

// long is since when a job is ready that should have begun.
const long = 10 * time.Second

// queueLine is a line of the queues, or their headings if there is no entry.
func (m *Model) queueLine(e *entry, selected bool, width int) string {
	faint := m.unless(selected, m.cfg.Style.Faint)
	const narrow = 72 // columns below which the limit and the engines are only in the pane
	fixed := 10 + 3*8
	if width >= narrow {
		fixed += 8 + 9
	}
	bar := max(min(width-fixed-22, 22), 0)
	if bar < 8 {
		bar = 0
	}
	name := max(min(width-1-fixed-bar, 40), 8)
	l := newLine(width - 1)
	if e == nil {
		l.cell("QUEUE", name, faint).cell("STATE", 10, faint).right("READY", 8, faint)
		if bar > 0 {
			l.cell("", bar, faint)
		}
		if l.right("OLDEST", 8, faint).right("ACTIVE", 8, faint); width >= narrow {
			l.right("LIMIT", 8, faint).right("ENGINES", 9, faint)
		}
		return l.String()
	}
	most := 1
	for i := range m.over.stats.Queues {
		most = max(most, m.over.stats.Queues[i].Pending)
	}
	depth := func(n int) {
		if bar > 0 {
			l.add("  ").cell(term.Meter(int64(n), int64(most), bar-2), bar-2, m.unless(selected, m.cfg.Style.Accent))
		}
	}
	age := func(d time.Duration) {
		look := same
		switch {
		case d >= time.Minute:
			look = m.unless(selected, m.cfg.Style.Bad)
		case d >= long:
			look = m.unless(selected, m.cfg.Style.Warn)
		}
		l.right(m.spanText(d), 8, look)
	}
	if e.typ != nil {
		stem := "├─ "
		if e.last {
			stem = "└─ "
		}
		l.add(stem, faint).cell(typeName(e.typ.Type), name-3).cell("", 10).right(count(int64(e.typ.Jobs)), 8)
		depth(e.typ.Jobs)
		age(e.typ.Oldest)
		return l.String()
	}
	q := e.queue
	state, look := "open", m.unless(selected, m.cfg.Style.Good)
	switch {
	case q.Paused:
		state, look = "paused", m.unless(selected, m.cfg.Style.Warn)
	case q.Engines == 0:
		state, look = "unserved", m.unless(selected, m.cfg.Style.Bad)
	}
	limit := "-"
	if q.Limit > 0 {
		limit = count(int64(q.Limit))
	}
	l.cell(clean(q.Name), name, m.unless(selected, m.cfg.Style.Bold)).cell(state, 10, look).right(count(int64(q.Pending)), 8)
	depth(q.Pending)
	if q.Pending > 0 {
		age(q.Latency)
	} else {
		l.right("-", 8, faint)
	}
	if l.right(count(int64(q.Active)), 8); width >= narrow {
		l.right(limit, 8, faint).right(count(int64(q.Engines)), 9, faint)
	}
	return l.String()
}

// typeName is the name of a type in a ready set: those without one are to end.
func typeName(typ string) string { return cmp.Or(clean(typ), "(to end; no engine has their type)") }

// spanText is a duration as ages are written.
func (m *Model) spanText(d time.Duration) string { return m.style().Age(m.now.Add(-d)) }

// queuePane tells more of a queue.
func (m *Model) queuePane(q *redisstore.QueueInfo, typ *redisstore.ReadyType, width int) []string {
	faint := m.cfg.Style.Faint
	out := []string{m.cfg.Style.Bold(term.Fit("queue "+clean(q.Name), width)), ""}
	say := func(look func(string) string, format string, a ...any) {
		for _, text := range wrap(fmt.Sprintf(format, a...), width) {
			out = append(out, look(text))
		}
	}
	switch {
	case q.Paused:
		say(m.cfg.Style.Warn, "paused: none of its jobs begins a run. p resumes it")
	case q.Engines == 0 && q.Pending > 0:
		say(m.cfg.Style.Bad, "no engine that lives serves it: weir worker --queue %s", clean(q.Name))
	case q.Limit > 0 && q.Active >= q.Limit && q.Pending > 0:
		say(m.cfg.Style.Warn, "its limit of %s at once is reached: = changes it", runs(q.Limit))
	case q.Latency >= long:
		say(m.cfg.Style.Warn, "the first has waited for %s: start more engines, or raise --concurrency or --handler-processes", m.spanText(q.Latency))
	case q.Pending == 0 && q.Limited > 0:
		say(m.cfg.Style.Warn, "%s for a limit, the first for %s: weir limits", wait(q.Limited), m.spanText(q.LimitedFor))
	case q.Pending == 0:
		say(m.cfg.Style.Good, "nothing waits")
	default:
		say(m.cfg.Style.Good, "its jobs begin within %s", m.spanText(q.Latency))
	}
	out = append(out, "")
	if typ != nil {
		say(same, "%s of type %s ready, the oldest since %s", jobs(typ.Jobs), typeName(typ.Type), m.spanText(typ.Oldest))
	}
	say(same, "%s ready, %s active", jobs(q.Pending), runs(q.Active))
	if q.Pending > 0 && q.Limited > 0 {
		say(same, "besides, %s for a limit, the first for %s", wait(q.Limited), m.spanText(q.LimitedFor))
	}
	if q.Limit > 0 {
		out = append(out, newLine(width).add("limit  ").add(term.Gauge(int64(q.Active), int64(q.Limit), 16), m.fill(int64(q.Active), int64(q.Limit))).add(fmt.Sprintf("  %d of %d", q.Active, q.Limit)).String())
	}
	say(faint, "%s with %d slots in all their queues", many(q.Engines, "engine"), q.Slots)
	if q.Scheduled+q.Retry+q.Archived > 0 {
		say(faint, "notifications: %d later, %d again, %d given up", q.Scheduled, q.Retry, q.Archived)
	}
	if len(q.Types) > 0 {
		out = append(out, "", faint("TYPES"))
		say(same, "%s", clean(strings.Join(q.Types, "  ")))
	}
	return out
}

func runs(n int) string { return many(n, "run") }

// wait says that so many jobs wait.
func wait(n int) string {
	if n == 1 {
		return "1 job waits"
	}
	return jobs(n) + " wait"
}

// many is a number of things.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(int64(n)) + " " + thing
}
