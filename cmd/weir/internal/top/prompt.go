package top

import (
	"encoding/json"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// prompt asks the user something in the two lines at the bottom.
type prompt interface {
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
	paste(m *Model, text string)
	// ask is what is asked, with that many columns to type the answer in, and a remark.
	// cursor is where the cursor is in text, or below zero.
	ask(columns int) (label, text string, cursor int, remark string, t tone)
}

// filterPrompt asks for the text that is to be in what is shown.
type filterPrompt struct {
	edit editor
	from key // what was selected before
}

func (p *filterPrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		m.prompt = nil
	case "esc":
		m.prompt, m.here.sel = nil, p.from
		m.here.search("")
	case "up":
		m.here.move(-1)
	case "down":
		m.here.move(1)
	default:
		p.edit.key(k)
		p.apply(m, p.edit.String())
	}
	return nil
}

func (p *filterPrompt) paste(m *Model, text string) {
	p.edit.insert(text)
	p.apply(m, p.edit.String())
}

func (p *filterPrompt) apply(m *Model, text string) {
	if m.here.filter != text {
		m.here.search(text)
	}
}

func (p *filterPrompt) ask(columns int) (label, text string, cursor int, remark string, t tone) {
	text, cursor = p.edit.view(columns)
	return "/", text, cursor, "what has it in its name, type, status or ID · Enter keeps it · Esc ends it", note
}

// portPrompt asks for one of several ports. They are drawn in the pane.
type portPrompt struct {
	title  string
	node   *node
	ports  []job.PortInfo
	chosen int
	then   func(n *node, p job.PortInfo)
}

// askPort asks for one of a job's ports, unless there is only one.
func (m *Model) askPort(title string, n *node, ports []job.PortInfo, then func(n *node, p job.PortInfo)) {
	switch len(ports) {
	case 0:
		text := n.path() + " has no such port"
		if _, ok := n.info.Port(port.Input, port.Any); ok {
			called := string(n.info.ID)
			if pic := m.subject.picture; pic != nil {
				called = pic.words.Call(n.info)
			}
			text += " yet, but takes any: weir send " + called + " PORT MESSAGE"
		}
		m.say(bad, text)
	case 1:
		then(n, ports[0])
	default:
		m.prompt = &portPrompt{title: title, node: n, ports: ports, then: then}
	}
}

func (p *portPrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc", "q":
		m.prompt = nil
	case "up", "k", "shift+tab":
		p.chosen = max(p.chosen-1, 0)
	case "down", "j", "tab":
		p.chosen = min(p.chosen+1, len(p.ports)-1)
	case "enter", "space", "right", "l":
		m.prompt = nil
		p.then(p.node, p.ports[p.chosen])
	}
	return nil
}

func (p *portPrompt) paste(*Model, string) {}

func (p *portPrompt) ask(int) (label, text string, cursor int, remark string, t tone) {
	chosen := p.ports[p.chosen]
	return p.title + " ", portName(chosen.Dir, chosen.Name), -1, "↑↓ choose · Enter takes it · Esc leaves it", note
}

// messagePrompt asks for a message to send.
type messagePrompt struct {
	node    *node
	port    string
	edit    editor
	back    int // messages gone back to with the arrow keys
	history []string
	failed  string // why Enter did not send
}

func (m *Model) askMessage(n *node, p job.PortInfo) {
	m.prompt = &messagePrompt{node: n, port: p.Name, history: m.sent}
}

func (p *messagePrompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	p.failed = ""
	switch k.String() {
	case "esc":
		m.prompt = nil
		m.say(note, "nothing was sent")
	case "up":
		p.recall(1)
	case "down":
		p.recall(-1)
	case "enter":
		if err := p.check(); err != nil {
			p.failed = words(err)
			return nil
		}
		m.prompt = nil
		m.sent = append(m.sent, p.edit.String())
		return m.send(p.node, p.port, []byte(p.edit.String()))
	default:
		p.edit.key(k)
	}
	return nil
}

// recall puts a message that was sent before into the line.
func (p *messagePrompt) recall(by int) {
	back := p.back + by
	if back < 0 || back > len(p.history) {
		return
	}
	p.back, p.edit = back, newEditor("")
	if back > 0 {
		p.edit = newEditor(p.history[len(p.history)-back])
	}
}

func (p *messagePrompt) paste(_ *Model, text string) { p.edit.insert(text) }

// check tells whether what is typed can be sent.
func (p *messagePrompt) check() error {
	text := p.edit.String()
	if text == "" {
		return errors.New(`type a message first: 42, "text", {"a": 1}`)
	}
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return fmt.Errorf("this is not valid JSON: %w", err) // which says it in fewer words than port
	}
	_, err := port.Encode(any)
	return err
}

func (p *messagePrompt) ask(columns int) (label, text string, cursor int, remark string, t tone) {
	label = "send to " + clean(p.node.name()+"."+p.port) + ": "
	text, cursor = p.edit.view(columns - len(label))
	switch {
	case p.failed != "":
		return label, text, cursor, p.failed, bad
	case p.check() == nil:
		return label, text, cursor, "Enter sends it · Esc leaves it", good
	}
	return label, text, cursor, `JSON, like 42, "text" or {"a": 1} · ↑ the last one · Esc leaves it`, note
}
