package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/trigger"
)

// triggerEntries are the triggers.
func (m *Model) triggerEntries(order string) []entry {
	all := slices.Clone(m.fire.all)
	next := func(t *trigger.Status) time.Time {
		if len(t.Next) == 0 || t.Paused {
			return time.Unix(1<<40, 0)
		}
		return t.Next[0]
	}
	last := func(t *trigger.Status) time.Time {
		if t.Last == nil {
			return time.Time{}
		}
		return *t.Last
	}
	slices.SortStableFunc(all, func(a, b *trigger.Status) int {
		by := 0
		switch order {
		case "next":
			by = next(a).Compare(next(b))
		case "last":
			by = last(b).Compare(last(a))
		}
		return cmp.Or(by, cmp.Compare(triggerName(a), triggerName(b)))
	})
	out := make([]entry, len(all))
	for n, t := range all {
		out[n] = entry{id: string(t.ID), trigger: t}
	}
	return out
}

func triggerName(t *trigger.Status) string {
	if len(t.Aliases) > 0 {
		return clean(t.Aliases[0])
	}
	return shortID(t.ID, idPrefix)
}

// firesOn says what makes a trigger fire.
func firesOn(t *trigger.Status) string {
	switch t.Kind {
	case trigger.Scheduled:
		return clean(strings.TrimSpace(t.Definition.Schedule + " " + t.Definition.Zone))
	case trigger.Event:
		return clean(strings.TrimSpace("channel " + t.Definition.Channel + " " + t.Definition.Filter))
	default:
	}
	return clean(strings.TrimSpace("webhook " + t.Definition.Filter))
}

// triggerState is how a trigger is.
func (m *Model) triggerState(t *trigger.Status) (string, func(string) string) {
	switch {
	case t.Status.Settled():
		return string(t.Status), m.cfg.Style.Faint
	case t.Paused:
		return "paused", m.cfg.Style.Warn
	case t.Pending > 0:
		return "asked", m.cfg.Style.Accent
	}
	return "active", m.cfg.Style.Good
}

// in is how long it is until a time.
func (m *Model) in(at time.Time) string {
	if !at.After(m.now) {
		return "now"
	}
	return "in " + m.style().Age(m.now.Add(-at.Sub(m.now)))
}

// triggerLine is a line of the triggers, or their headings if there is no entry.
func (m *Model) triggerLine(e *entry, selected bool, width int) string {
	faint := m.unless(selected, m.cfg.Style.Faint)
	name := max(min(width-10-9-9-9-12, 32), 10)
	l := newLine(width - 1)
	if e == nil {
		return l.cell("TRIGGER", name, faint).cell("STATE", 10, faint).right("NEXT", 9, faint).right("LAST", 9, faint).right("FIRED", 9, faint).
			add("  FIRES ON", faint).String()
	}
	t := e.trigger
	state, look := m.triggerState(t)
	next, last := "-", "never"
	if len(t.Next) > 0 && !t.Paused {
		next = m.in(t.Next[0])
	}
	if t.Last != nil {
		last = m.ago(*t.Last)
	}
	return l.cell(triggerName(t), name, m.unless(selected, m.cfg.Style.Bold)).cell(state, 10, m.unless(selected, look)).right(next, 9).
		right(last, 9).right(count(t.Firings), 9).add("  "+firesOn(t), faint).String()
}

// triggerPane tells more of a trigger.
func (m *Model) triggerPane(t *trigger.Status, width int) []string {
	faint := m.cfg.Style.Faint
	out := []string{m.cfg.Style.Bold(term.Fit("trigger "+triggerName(t), width))}
	say := func(look func(string) string, format string, a ...any) {
		for _, text := range wrap(fmt.Sprintf(format, a...), width) {
			out = append(out, look(text))
		}
	}
	say(faint, "%s", t.ID)
	state, look := m.triggerState(t)
	say(look, "%s%s", state, map[bool]string{true: ": what would fire is dropped. p resumes it"}[t.Paused])
	if t.Reason != "" {
		say(m.cfg.Style.Bad, "%s", brief(t.Reason))
	}
	out = append(out, "")
	say(same, "fires on %s", firesOn(t))
	if t.Understood != "" {
		say(faint, "%s", clean(t.Understood))
	}
	for n, at := range t.Next {
		say(same, "%s %s  %s", map[bool]string{true: "next", false: "then"}[n == 0], at.Format("2006-01-02 15:04:05 MST"), m.in(at))
	}
	if l := t.Definition.Launch; l != nil && l.Type != "" {
		say(same, "launches %s", clean(l.Type))
	}
	out = append(out, "")
	say(same, "fired %s times, launched %s", count(t.Firings), count(t.Launches))
	if t.Last != nil {
		say(same, "last %s ago, %s", m.ago(*t.Last), t.Last.Format("2006-01-02 15:04:05 MST"))
	}
	if t.LastTree != "" {
		say(faint, "last tree %s: Enter shows it", shortID(t.LastTree, idPrefix))
	}
	for _, why := range slices.Sorted(maps.Keys(t.Dropped)) {
		say(m.cfg.Style.Warn, "dropped %s: %s", count(t.Dropped[why]), clean(why))
	}
	if t.Failed > 0 {
		say(m.cfg.Style.Bad, "%s that it launched failed", jobs(int(t.Failed)))
	}
	if len(t.Running) > 0 || t.Waiting > 0 {
		say(same, "%d running, %s waiting", len(t.Running), count(t.Waiting))
	}
	return out
}
