package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// choice is one of the answers to a question.
type choice struct {
	key, text string
	do        func() tea.Cmd
}

// confirmPrompt asks before something is changed. Any key that is not one of the choices means no.
type confirmPrompt struct {
	title   string
	lines   []string // what it is about, in colours
	about   string   // what becomes of it
	choices []choice
	no      string // what is said after a no
}

func (p *confirmPrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	m.prompt = nil
	for _, c := range p.choices {
		if k.String() == c.key {
			return c.do()
		}
	}
	m.say(note, p.no)
	return nil
}

func (p *confirmPrompt) paste(*Model, string) {}

func (p *confirmPrompt) ask(int) (label, text string, cursor int, remark string, t tone) {
	var keys []string
	for _, c := range p.choices {
		keys = append(keys, c.key+" "+c.text)
	}
	return p.title + " ", strings.Join(append(keys, "n no"), " · "), -1, p.about, note
}

// box is the question in the middle of the screen.
func (p *confirmPrompt) box(m *Model) []string {
	width := min(64, m.width-4)
	var lines []string
	for _, l := range p.lines {
		lines = append(lines, " "+filled(l, width-4))
	}
	if p.about != "" {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		for _, l := range wrap(p.about, width-4) {
			lines = append(lines, " "+m.cfg.Style.Faint(l))
		}
	}
	answers := newLine(width - 2)
	for _, c := range append(slices.Clone(p.choices), choice{key: "n", text: "no"}) {
		answers.add(" ").add(" "+c.key+" ", m.badge).add(" " + c.text + " ")
	}
	lines = append(lines, "", answers.String())
	return m.frame(rect{w: width, h: len(lines) + 2}, m.cfg.Style.Bold(p.title), "", lines, m.cfg.Style.Warn)
}

// jobText is a job in one line of a question.
func (m *Model) jobText(n *node) string {
	i := n.info
	return m.cfg.Style.Colored(i.Status, term.Symbol(i.Status)) + " " + n.path() + "  " + m.cfg.Style.Faint(string(i.Status)+" · "+shortID(i.ID, idPrefix))
}

// confirmAct asks before something is done to one job.
func (m *Model) confirmAct(k string, n *node) {
	p := &confirmPrompt{lines: []string{m.jobText(n)}, no: n.path() + " goes on as before"}
	switch yes := func(do func(*node) tea.Cmd) { p.choices = []choice{{"y", "yes", func() tea.Cmd { return do(n) }}} }; k {
	case "r":
		p.title, p.about = "retry "+n.path()+"?", "it runs again, on what it has not read"
		if n.info.Graph {
			p.about = jobs(len(failedBelow(n))) + " in it have failed and run again"
			if m.here == m.list {
				p.about = "all jobs in it that have failed run again"
			}
		}
		yes(m.retry)
	case "R":
		p.title, p.about = "run "+n.path()+"?", "as if a message had come"
		yes(m.run)
	case "d":
		p.title, p.about = "delete "+n.path()+"?", "it and all below it are removed with all they hold; they must be terminated"
		yes(m.remove)
	default:
		p.title, p.about = "terminate "+n.path()+"?", "a run in progress finishes first; then Shutdown gets its chance"
		yes(func(n *node) tea.Cmd { return m.terminate(n, false) })
		p.choices = append(p.choices, choice{"r", "yes, and all below it", func() tea.Cmd { return m.terminate(n, true) }})
	}
	m.prompt = p
}

// mark marks the selected job, or no longer, and goes on to the next.
func (m *Model) mark() {
	r, ok := m.here.selected()
	if !ok || r.finished > 0 {
		return
	}
	id := r.node.info.ID
	if m.here.marked[id] {
		delete(m.here.marked, id)
	} else {
		m.here.marked[id] = true
	}
	if m.view == viewTree {
		m.here.move(1)
	}
}

// markAll marks all jobs that are shown, or none if all are marked.
func (m *Model) markAll() {
	all, before := 0, len(m.here.marked)
	for _, r := range m.here.rows {
		if r.finished == 0 && !r.context {
			all++
			m.here.marked[r.node.info.ID] = true
		}
	}
	if all == before && len(m.here.marked) == all {
		clear(m.here.marked)
	}
}

// bulkTime is how long something may take that is done to many jobs, and previewed how many of them a question shows.
const (
	bulkTime  = 10 * time.Minute
	previewed = 6
)

// deed is what can be done to many jobs.
type deed struct {
	verb, done string
	can        func(statemachine.Status) bool
	cannot     string
	do         func(ctx context.Context, j Job) error
}

var deeds = map[string]deed{
	"r": {
		"retry", "run again", func(s statemachine.Status) bool { return s == statemachine.Failed }, "have not failed",
		func(ctx context.Context, j Job) error { return j.Retry(ctx) },
	},
	"R": {
		"run", "will run", func(s statemachine.Status) bool { return !s.Final() }, "are at their end",
		func(ctx context.Context, j Job) error { return j.Run(ctx) },
	},
	"x": {"terminate", "will end, with all below them", func(s statemachine.Status) bool {
		return s != statemachine.Terminated && s != statemachine.Terminating
	}, "have ended", func(ctx context.Context, j Job) error { return j.TerminateAll(ctx) }},
	"d": {
		"delete", "are deleted", func(s statemachine.Status) bool { return s == statemachine.Terminated }, "are not terminated",
		func(ctx context.Context, j Job) error { return j.Delete(ctx) },
	},
}

// bulk asks before something is done to all jobs that are marked. Those that it cannot be done to are counted, and left alone.
func (m *Model) bulk(k string) tea.Cmd {
	d := deeds[k]
	var these []*node
	for id := range m.here.marked {
		if n := m.here.picture.nodes[id]; n != nil && d.can(n.info.Status) && (!n.info.Graph || k != "r" && k != "R") {
			these = append(these, n)
		}
	}
	slices.SortFunc(these, func(a, b *node) int { return a.number - b.number })
	rest := len(m.here.marked) - len(these)
	if len(these) == 0 {
		m.say(bad, fmt.Sprintf("none of the %s selected can be %s: they %s", count(int64(rest)), past[d.verb], d.cannot))
		return nil
	}
	p := &confirmPrompt{title: d.verb + " " + jobs(len(these)) + "?", no: "nothing was done"}
	if rest > 0 {
		p.about = fmt.Sprintf("%s of the %s selected stay as they are: they %s, or are graphs", count(int64(rest)), count(int64(rest+len(these))), d.cannot)
	}
	for n, one := range these {
		if n == previewed-1 && len(these) > previewed {
			p.lines = append(p.lines, m.cfg.Style.Faint(fmt.Sprintf("… and %s more", count(int64(len(these)-n)))))
			break
		}
		p.lines = append(p.lines, m.jobText(one))
	}
	p.choices = []choice{{"y", "yes", func() tea.Cmd { return m.each(d, these) }}}
	m.prompt = p
	return nil
}

// past is what has been done.
var past = map[string]string{"retry": "retried", "run": "run", "terminate": "terminated", "delete": "deleted"}

// each does something to jobs, one after the other, and goes on where it cannot be done.
func (m *Model) each(d deed, these []*node) tea.Cmd {
	source, ids := m.cfg.Source, make([]job.ID, len(these))
	for n, one := range these {
		ids[n] = one.info.ID
	}
	clear(m.here.marked)
	return m.do(d.verb+" "+jobs(len(ids))+"…", bulkTime, func(ctx context.Context) (string, error) {
		done, not, why := 0, 0, error(nil)
		for _, id := range ids {
			j, err := source.Find(ctx, string(id))
			if err == nil {
				err = d.do(ctx, j)
			}
			switch {
			case err == nil:
				done++
			case errors.Is(err, job.ErrStatus) || errors.Is(err, job.ErrNotFound): // somebody was faster
				not, why = not+1, err
			default:
				return "", fmt.Errorf("after %s: %w", jobs(done), err)
			}
		}
		if done == 0 {
			return "", why
		}
		text := jobs(done) + " " + d.done
		if not > 0 {
			text += ", " + strconv.Itoa(not) + " could not"
		}
		return text, nil
	})
}
