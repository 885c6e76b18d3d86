package top

import (
	"context"
	"errors"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
)

// tableKey moves in a table, and acts on what is selected there.
func (m *Model) tableKey(k string) tea.Cmd {
	t := &m.tabs[m.view]
	page := max(m.rowsHeight()-1, 1)
	if by, moves := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "ctrl+u": -page, "pgdown": page, "ctrl+d": page, "home": -len(t.entries), "g": -len(t.entries), "end": len(t.entries), "G": len(t.entries)}[k]; moves {
		t.move(by)
		m.scroll = 0
		return nil
	}
	if k == "o" {
		t.order = (t.order + 1) % len(orders[m.view])
		return nil
	}
	e, ok := m.entry()
	if !ok {
		return nil
	}
	switch {
	case e.queue != nil:
		return m.queueKey(k, e.queue)
	case e.engine != nil:
		return m.workerKey(k, e)
	}
	return m.triggerKey(k, e.trigger)
}

func (m *Model) queueKey(k string, q *redisstore.QueueInfo) tea.Cmd {
	switch k {
	case "p":
		m.confirmPause(q.Name, !q.Paused)
	case "=", "L":
		m.prompt = &limitPrompt{queue: q.Name, edit: newEditor("")}
		if q.Limit > 0 {
			m.prompt = &limitPrompt{queue: q.Name, edit: newEditor(strconv.Itoa(q.Limit))}
		}
	case "y":
		return m.copy(q.Name)
	case "enter", "right", "l":
		m.show(viewTree)
		m.back()
		m.list.which.Queue, m.list.which.All = q.Name, true
		m.relist()
	}
	return nil
}

// confirmPause asks before a queue is paused or resumed.
func (m *Model) confirmPause(queue string, pause bool) {
	source, name := m.cfg.Source, clean(queue)
	p := &confirmPrompt{title: "resume queue " + name + "?", about: "its jobs run again", no: "queue " + name + " is as before"}
	doing, done, do := "resuming queue "+name, "queue "+name+" goes on", source.ResumeQueue
	if pause {
		p.title, p.about = "pause queue "+name+"?", "none of its jobs begins a run, on any engine, until it is resumed; nothing is lost"
		doing, done, do = "pausing queue "+name, "queue "+name+" is paused", source.PauseQueue
	}
	p.choices = []choice{{"y", "yes", func() tea.Cmd {
		return m.do(doing, actTime, func(ctx context.Context) (string, error) { return done, do(ctx, queue) })
	}}}
	m.prompt = p
}

// confirmLimit asks before a queue gets a limit; zero means none.
func (m *Model) confirmLimit(queue string, n int) {
	source, name := m.cfg.Source, clean(queue)
	p := &confirmPrompt{title: "limit queue " + name + " to " + runs(n) + " at once?", about: "over all engines; runs in progress go on", no: "queue " + name + " is as before"}
	done := "queue " + name + " runs at most " + jobs(n) + " at once"
	if n == 0 {
		p.title, p.about, done = "end the limit of queue "+name+"?", "any number of its jobs may run at once", "queue "+name+" has no limit"
	}
	p.choices = []choice{{"y", "yes", func() tea.Cmd {
		return m.do("limiting queue "+name, actTime, func(ctx context.Context) (string, error) { return done, source.SetQueueLimit(ctx, queue, n) })
	}}}
	m.prompt = p
}

// limitPrompt asks how many jobs of a queue may run at once.
type limitPrompt struct {
	queue  string
	edit   editor
	failed string
}

func (p *limitPrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	p.failed = ""
	switch k.String() {
	case "esc":
		m.prompt = nil
	case "enter":
		n, err := limitOf(p.edit.String())
		if err != nil {
			p.failed = err.Error()
			return nil
		}
		m.confirmLimit(p.queue, n)
	default:
		p.edit.key(k)
	}
	return nil
}

func (p *limitPrompt) paste(_ *Model, text string) { p.edit.insert(text) }

func (p *limitPrompt) ask(columns int) (label, text string, cursor int, remark string, t tone) {
	label = "runs at once in queue " + clean(p.queue) + ": "
	text, cursor = p.edit.view(columns - columnsOf(label))
	if p.failed != "" {
		return label, text, cursor, p.failed, bad
	}
	return label, text, cursor, "a number, or none · Enter goes on · Esc leaves it", note
}

// limitOf reads a limit: none is zero.
func limitOf(text string) (int, error) {
	if text == "none" || text == "0" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, errors.New("a limit is a number from 1 to 1,000,000, or none")
	}
	return n, nil
}

func (m *Model) workerKey(k string, e entry) tea.Cmd {
	switch {
	case k == "y" && e.run != nil:
		return m.copy(string(e.run.Job))
	case k == "y":
		return m.copy(e.engine.ID)
	case e.run != nil && (k == "enter" || k == "right" || k == "l"):
		m.open(e.run.Job)
	}
	return nil
}

func (m *Model) triggerKey(k string, t *trigger.Status) tea.Cmd {
	switch k {
	case "F":
		m.confirmTrigger(t, FireTrigger)
	case "p":
		if t.Paused {
			m.confirmTrigger(t, ResumeTrigger)
		} else {
			m.confirmTrigger(t, PauseTrigger)
		}
	case "y":
		return m.copy(string(t.ID))
	case "enter", "right", "l":
		if t.LastTree == "" {
			m.say(note, triggerName(t)+" has launched no tree yet")
			return nil
		}
		m.open(t.LastTree)
	}
	return nil
}

// confirmTrigger asks before something is done to a trigger.
func (m *Model) confirmTrigger(t *trigger.Status, do TriggerAct) {
	name, source, by, id := triggerName(t), m.cfg.Source, m.cfg.By, t.ID
	p := &confirmPrompt{title: string(do) + " trigger " + name + "?", lines: []string{firesOn(t)}, no: "trigger " + name + " is as before"}
	done := ""
	switch do {
	case FireTrigger:
		p.about, done = "once, now, also while it is paused", "trigger "+name+" fires"
	case PauseTrigger:
		p.about, done = "what would fire is dropped and counted until it is resumed", "trigger "+name+" pauses"
	case ResumeTrigger:
		p.about, done = "it fires again from now on", "trigger "+name+" goes on"
	}
	p.choices = []choice{{"y", "yes", func() tea.Cmd {
		return m.do(p.title, actTime, func(ctx context.Context) (string, error) { return done, source.Trigger(ctx, id, do, by) })
	}}}
	m.prompt = p
}
