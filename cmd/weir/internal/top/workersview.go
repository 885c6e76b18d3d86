package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
)

// workerEntries are the engines that live, and below each its runs.
func (m *Model) workerEntries(order string) []entry {
	if m.over.stats == nil {
		return nil
	}
	engines := slices.Clone(m.over.stats.Engines)
	slices.SortStableFunc(engines, func(a, b store.EngineInfo) int {
		by := 0
		switch order {
		case "load":
			by = cmp.Compare(b.Running*max(a.Concurrency, 1), a.Running*max(b.Concurrency, 1))
		case "newest":
			by = b.Started.Compare(a.Started)
		}
		return cmp.Or(by, cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	})
	var out []entry
	for i := range engines {
		e := &engines[i]
		out = append(out, entry{id: e.ID, engine: e})
		for k := range e.Runs {
			out = append(out, entry{id: e.ID + "\n" + string(e.Runs[k].Job), engine: e, run: &e.Runs[k], last: k == len(e.Runs)-1})
		}
	}
	return out
}

// workerLine is a line of the engines, or their headings if there is no entry.
func (m *Model) workerLine(e *entry, selected bool, width int) string {
	faint := m.unless(selected, m.cfg.Style.Faint)
	bar := max(min(width-62, 16), 0)
	name := max(min(width-10-2*7-9-bar, 36), 10)
	l := newLine(width - 1)
	if e == nil {
		return l.cell("ENGINE", name, faint).cell("STATE", 10, faint).right("RUNS", 9, faint).cell("", bar).right("UP", 7, faint).
			right("SEEN", 7, faint).add("  QUEUES", faint).String()
	}
	if e.run != nil {
		stem := "├─ "
		if e.last {
			stem = "└─ "
		}
		l.add(stem, faint).cell(clean(e.run.Type), name-3).cell("running", 10, m.unless(selected, m.cfg.Style.Accent)).cell("", 9+bar)
		return l.right(m.ago(e.run.Since), 7).right("", 7).add("  "+clean(e.run.Queue), faint).add("  "+shortID(e.run.Job, 22), faint).String()
	}
	w := e.engine
	state, look := "serving", m.unless(selected, m.cfg.Style.Good)
	if w.Stopping {
		state, look = "stopping", m.unless(selected, m.cfg.Style.Warn)
	}
	l.cell(hostOf(w), name, m.unless(selected, m.cfg.Style.Bold)).cell(state, 10, look).right(fmt.Sprintf("%d/%d", w.Running, w.Concurrency), 9)
	if bar > 0 {
		l.add("  ").cell(term.Gauge(int64(w.Running), int64(w.Concurrency), bar-2), bar-2, m.unless(selected, m.fill(int64(w.Running), int64(w.Concurrency))))
	}
	return l.right(m.ago(w.Started), 7, faint).right(m.ago(w.Seen), 7, faint).add("  "+clean(queuesOf(w)), faint).String()
}

func hostOf(e *store.EngineInfo) string {
	return clean(cmp.Or(e.Host, "-")) + ":" + strconv.Itoa(e.PID)
}

// queuesOf are the queues of an engine, with the weights that are not 1.
func queuesOf(e *store.EngineInfo) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(e.Queues)) {
		if w := e.Queues[name]; w != 1 {
			name += "=" + strconv.Itoa(w)
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

// workerPane tells more of an engine, or of a run.
func (m *Model) workerPane(e *store.EngineInfo, run *store.RunningJob, width int) []string {
	faint := m.cfg.Style.Faint
	out := []string{m.cfg.Style.Bold(term.Fit("engine "+hostOf(e), width)), ""}
	say := func(look func(string) string, format string, a ...any) {
		for _, text := range wrap(fmt.Sprintf(format, a...), width) {
			out = append(out, look(text))
		}
	}
	if run != nil {
		say(m.cfg.Style.Accent, "%s runs since %s, in queue %s", clean(run.Type), m.ago(run.Since), clean(run.Queue))
		say(same, "job %s", run.Job)
		say(faint, "Enter shows it in its tree")
		out = append(out, "")
	}
	out = append(out, newLine(width).add("slots  ").add(term.Gauge(int64(e.Running), int64(e.Concurrency), 16), m.fill(int64(e.Running), int64(e.Concurrency))).
		add(fmt.Sprintf("  %d of %d", e.Running, e.Concurrency)).String())
	for _, name := range slices.Sorted(maps.Keys(e.Queues)) {
		say(same, "queue %s, weight %d: %d active", clean(name), e.Queues[name], e.Busy[name])
	}
	say(faint, "started %s ago, seen %s ago", m.ago(e.Started), m.ago(e.Seen))
	if e.Version != "" {
		say(faint, "version %s", clean(e.Version))
	}
	if e.Running > len(e.Runs) && len(e.Runs) > 0 {
		say(faint, "and %s that began later", runs(e.Running-len(e.Runs)))
	}
	out = append(out, "", faint(fmt.Sprintf("TYPES %d", len(e.Types))))
	say(same, "%s", clean(strings.Join(slices.Sorted(slices.Values(e.Types)), "  ")))
	return out
}
