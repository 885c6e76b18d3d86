package top

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// command is something that can be typed behind a colon.
type command struct {
	name, args, help string
	aliases          []string
	words            func(m *Model) []string // what may come behind it
	do               func(m *Model, args []string) (tea.Cmd, error)
}

// commands are all, in the order in which they are shown.
func commands() []command {
	show := func(v view) func(*Model, []string) (tea.Cmd, error) {
		return func(m *Model, _ []string) (tea.Cmd, error) { m.show(v); return nil, nil }
	}
	return []command{
		{name: "trees", help: "the list of trees", aliases: []string{"jobs", "list", "ls"}, do: func(m *Model, _ []string) (tea.Cmd, error) {
			m.show(viewTree)
			m.back()
			return nil, nil
		}},
		{name: "tree", help: "the tree that was opened last", do: func(m *Model, _ []string) (tea.Cmd, error) {
			m.show(viewTree)
			if m.tree != nil {
				m.here = m.tree
			}
			return nil, nil
		}},
		{name: "graph", help: "the picture of the tree", aliases: []string{"draw"}, do: show(viewGraph)},
		{name: "queues", help: "queues, and what is ready in them", do: show(viewQueues)},
		{name: "workers", help: "engines, and their runs", aliases: []string{"engines", "ps"}, do: show(viewWorkers)},
		{name: "triggers", help: "triggers, and when they fire", do: show(viewTriggers)},
		{name: "open", args: "JOB", help: "the tree of a job: an ID or an alias", do: openCommand},
		{name: "filter", args: "STATUS|type=T|queue=Q|all", help: "list only these, found by the server", words: filterWords, do: func(m *Model, args []string) (tea.Cmd, error) {
			return nil, m.filterBy(args)
		}},
		{name: "sort", args: "ORDER", help: "in which order", words: func(m *Model) []string {
			if names, ok := orders[m.view]; ok {
				return names
			}
			return slices.Sorted(maps.Keys(sortWords))
		}, do: func(m *Model, args []string) (tea.Cmd, error) { return nil, m.sortBy(strings.Join(args, " ")) }},
		{name: "pause", args: "QUEUE|TRIGGER", help: "pause a queue or a trigger", words: pausable, do: pauseCommand(true)},
		{name: "resume", args: "QUEUE|TRIGGER", help: "let it go on", words: pausable, do: pauseCommand(false)},
		{name: "limit", args: "QUEUE N|none", help: "how many of its jobs run at once", words: queueNames, do: limitCommand},
		{name: "fire", args: "TRIGGER", help: "let a trigger fire once", words: triggerNames, do: fireCommand},
		{name: "retry", help: "retry what is selected", do: keyCommand("r")},
		{name: "run", help: "run it", do: keyCommand("R")},
		{name: "terminate", help: "end it", aliases: []string{"kill", "cancel", "end"}, do: keyCommand("x")},
		{name: "delete", help: "delete it", aliases: []string{"rm"}, do: keyCommand("d")},
		{name: "log", help: "its log, on the full screen", aliases: []string{"logs"}, do: keyCommand("L")},
		{name: "copy", help: "copy its ID", aliases: []string{"yank"}, do: keyCommand("y")},
		{name: "help", help: "all keys", do: func(m *Model, _ []string) (tea.Cmd, error) { m.help = true; return nil, nil }},
		{name: "quit", help: "leave", aliases: []string{"q", "exit"}, do: func(*Model, []string) (tea.Cmd, error) { return tea.Quit, nil }},
	}
}

// find finds a command by its name, an alias, or a beginning that only one has.
func find(word string) (command, error) {
	all, names, begin := commands(), []string{}, []command{}
	for _, c := range all {
		if c.name == word || slices.Contains(c.aliases, word) {
			return c, nil
		}
		names = append(names, c.name)
		if strings.HasPrefix(c.name, word) {
			begin = append(begin, c)
		}
	}
	if len(begin) == 1 {
		return begin[0], nil
	}
	return command{}, fmt.Errorf("no command %q: %s", clean(word), port.Suggest(word, names))
}

func keyCommand(k string) func(*Model, []string) (tea.Cmd, error) {
	return func(m *Model, _ []string) (tea.Cmd, error) {
		if m.view > viewGraph {
			return m.tableKey(k), nil
		}
		return m.key(keyOf(k)), nil
	}
}

func keyOf(k string) tea.KeyPressMsg { return tea.KeyPressMsg{Code: rune(k[0]), Text: k} }

func openCommand(m *Model, args []string) (tea.Cmd, error) {
	if len(args) != 1 {
		return nil, errors.New("which job? :open JOB takes an ID or an alias")
	}
	source, name := m.cfg.Source, args[0]
	m.say(busy, "finding "+clean(name))
	return func() tea.Msg {
		ctx, cancel := context.WithTimeoutCause(context.Background(), actTime, errors.New("no answer within "+actTime.String()))
		defer cancel()
		j, err := source.Find(ctx, name)
		if err != nil {
			return opened{err: err}
		}
		return opened{id: j.ID()}
	}, nil
}

// opened is a job that was looked for.
type opened struct {
	id  job.ID
	err error
}

func filterWords(m *Model) []string {
	words := append(slices.Sorted(maps.Keys(statusWords)), "all")
	for _, q := range queueNames(m) {
		words = append(words, "queue="+q)
	}
	return words
}

func queueNames(m *Model) []string {
	var names []string
	if m.over.stats != nil {
		for i := range m.over.stats.Queues {
			names = append(names, m.over.stats.Queues[i].Name)
		}
	}
	return names
}

func triggerNames(m *Model) []string {
	var names []string
	for _, t := range m.fire.all {
		names = append(names, triggerName(t))
	}
	return names
}

func pausable(m *Model) []string { return append(queueNames(m), triggerNames(m)...) }

func pauseCommand(pause bool) func(m *Model, args []string) (tea.Cmd, error) {
	return func(m *Model, args []string) (tea.Cmd, error) {
		name := strings.Join(args, " ")
		if name == "" {
			return nil, errors.New("which queue or trigger?")
		}
		for _, t := range m.fire.all {
			if triggerName(t) == name && !slices.Contains(queueNames(m), name) {
				m.confirmTrigger(t, map[bool]TriggerAct{true: PauseTrigger, false: ResumeTrigger}[pause])
				return nil, nil
			}
		}
		if !slices.Contains(queueNames(m), name) {
			return nil, fmt.Errorf("no queue %q is known: %s", clean(name), port.Suggest(name, pausable(m)))
		}
		m.confirmPause(name, pause)
		return nil, nil
	}
}

func limitCommand(m *Model, args []string) (tea.Cmd, error) {
	if len(args) != 2 {
		return nil, errors.New("use :limit QUEUE N, or :limit QUEUE none")
	}
	if !slices.Contains(queueNames(m), args[0]) {
		return nil, fmt.Errorf("no queue %q is known: %s", clean(args[0]), port.Suggest(args[0], queueNames(m)))
	}
	n, err := limitOf(args[1])
	if err == nil {
		m.confirmLimit(args[0], n)
	}
	return nil, err
}

func fireCommand(m *Model, args []string) (tea.Cmd, error) {
	name := strings.Join(args, " ")
	for _, t := range m.fire.all {
		if triggerName(t) == name || string(t.ID) == name {
			m.confirmTrigger(t, FireTrigger)
			return nil, nil
		}
	}
	if m.fire.at.IsZero() {
		return nil, errors.New("triggers are not read yet: 5 shows them")
	}
	return nil, fmt.Errorf("no trigger %q: %s", clean(name), port.Suggest(name, triggerNames(m)))
}

// commandPrompt takes a command.
type commandPrompt struct {
	edit   editor
	back   int // commands gone back to with the arrow keys
	chosen int // of the completions; below zero: none yet
	failed string
}

func newCommandPrompt(*Model) *commandPrompt { return &commandPrompt{chosen: -1} }

// completion is a word that the line may go on with.
type completion struct{ line, word, args, help string }

// completions are those that fit what is typed.
func (p *commandPrompt) completions(m *Model) []completion {
	text := p.edit.String()
	name, rest, behind := strings.Cut(text, " ")
	var out []completion
	if !behind {
		for _, c := range commands() {
			also := slices.ContainsFunc(c.aliases, func(a string) bool { return name != "" && strings.HasPrefix(a, name) })
			if strings.HasPrefix(c.name, name) || also {
				line := c.name
				if c.words != nil || c.args != "" {
					line += " "
				}
				out = append(out, completion{line, c.name, c.args, c.help})
			}
		}
		return out
	}
	c, err := find(name)
	if err != nil || c.words == nil {
		return nil
	}
	at := strings.LastIndex(rest, " ") + 1
	for _, w := range c.words(m) {
		if strings.HasPrefix(w, rest[at:]) && w != rest[at:] {
			out = append(out, completion{line: name + " " + rest[:at] + w, word: w})
		}
	}
	return out
}

func (p *commandPrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	p.failed = ""
	switch k.String() {
	case "esc":
		m.prompt = nil
	case "enter":
		return p.enter(m)
	case "tab", "down":
		p.choose(m, 1)
	case "shift+tab":
		p.choose(m, -1)
	case "up":
		if p.chosen >= 0 {
			p.choose(m, -1)
			return nil
		}
		if p.back < len(m.typed) {
			p.back++
			p.edit = newEditor(m.typed[len(m.typed)-p.back])
		}
	case "backspace":
		if len(p.edit.text) == 0 {
			m.prompt = nil
			return nil
		}
		p.typed(k)
	default:
		p.typed(k)
	}
	return nil
}

// typed takes a key of the text; a completion that was chosen is part of it.
func (p *commandPrompt) typed(k tea.KeyPressMsg) {
	p.chosen = -1
	p.edit.key(k)
}

// choose goes to the next completion. One alone is taken.
func (p *commandPrompt) choose(m *Model, by int) {
	all := p.completions(m)
	switch {
	case len(all) == 0:
		p.chosen = -1
	case len(all) == 1:
		p.edit, p.chosen = newEditor(all[0].line), -1
	case p.chosen < 0 && by > 0:
		p.chosen = 0
	default:
		p.chosen = (max(p.chosen, 0) + by + len(all)) % len(all)
	}
}

// enter takes the completion that was chosen, or does what is typed.
func (p *commandPrompt) enter(m *Model) tea.Cmd {
	if all := p.completions(m); p.chosen >= 0 && p.chosen < len(all) {
		p.edit, p.chosen = newEditor(all[p.chosen].line), -1
		if strings.HasSuffix(p.edit.String(), " ") {
			return nil
		}
	}
	text := strings.TrimSpace(p.edit.String())
	if text == "" {
		m.prompt = nil
		return nil
	}
	typed := strings.Fields(text)
	c, err := find(typed[0])
	if err == nil {
		m.prompt = nil
		var cmd tea.Cmd
		if cmd, err = c.do(m, typed[1:]); err == nil {
			m.typed = append(m.typed, text)
			return cmd
		}
	}
	m.prompt, p.failed = p, words(err)
	return nil
}

func (p *commandPrompt) paste(_ *Model, text string) { p.edit.insert(text) }

func (p *commandPrompt) ask(columns int) (label, text string, cursor int, remark string, t tone) {
	text, cursor = p.edit.view(columns - 1)
	if p.failed != "" {
		return ":", text, cursor, p.failed, bad
	}
	return ":", text, cursor, "Tab completes · ↑ what was typed before · Enter does it · Esc leaves", note
}

// shown is how many completions are shown at once.
const shown = 10

// box are the completions.
func (p *commandPrompt) box(m *Model) []string {
	all := p.completions(m)
	if len(all) == 0 {
		return nil
	}
	width := min(66, m.width-2)
	from := max(min(p.chosen-shown/2, len(all)-shown), 0)
	var lines []string
	for n := from; n < min(from+shown, len(all)); n++ {
		c := all[n]
		l := newLine(width-2).add(" ").add(c.word, m.unless(n == p.chosen, m.cfg.Style.Bold)).add(" "+c.args, m.unless(n == p.chosen, m.cfg.Style.Faint))
		if rest := l.columns - min(columnsOf(c.help), l.columns) - 1; c.help != "" && rest > 0 {
			l.space(rest).add(c.help, m.unless(n == p.chosen, m.cfg.Style.Faint))
		}
		text := l.String()
		if n == p.chosen {
			text = m.picked("▌" + text[1:])
		}
		lines = append(lines, text)
	}
	right := ""
	if len(all) > shown {
		right = m.cfg.Style.Faint(fmt.Sprintf("%d of them", len(all)))
	}
	return m.frame(rect{w: width, h: len(lines) + 2}, m.cfg.Style.Bold("commands"), right, lines, m.cfg.Style.Accent)
}
