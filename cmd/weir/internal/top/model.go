// Package top is the live view of jobs in a terminal: a list of trees, a tree of jobs, and
// beside it what is known of the selected one, with keys to steer it.
package top

import (
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// Config says what is shown, and how.
type Config struct {
	Source   Source
	Job      job.ID        // whose tree is shown first; empty: the list of the newest trees
	Interval time.Duration // between two reads, or more if reading takes long; zero means a second
	By       string        // who acts, for the logs of jobs
	Where    string        // which Redis that is
	Style    term.Style    // whether there are colours
	ASCII    bool          // draw with nothing else
	// Now and Tick are the clock: time.Now and tea.Tick if they are nil.
	Now  func() time.Time
	Tick func(d time.Duration, fn func(time.Time) tea.Msg) tea.Cmd
}

// Limits of what is read.
const (
	listStep = 100                    // so many more trees are listed each time the end is reached
	restOf   = 4                      // a read is followed by a pause of so many times what it took
	maxRest  = 10 * time.Second       // between two reads of details, whatever they took
	patience = 3 * time.Second        // a read that takes longer is late
	beat     = time.Second            // the clock on the screen
	minBeat  = 100 * time.Millisecond // nobody sees more
)

// Model is the view. It is used by one goroutine: that of the tea.Program that runs it.
type Model struct {
	cfg           Config
	now           time.Time
	width, height int

	list *place
	here *place // list, or a tree

	pane   pane
	peek   job.PortRef // the port that is peeked at, if any
	scroll int         // lines that the pane is scrolled, the log backwards
	hidden int         // lines of the pane that there was no room for when it was drawn
	help   bool
	prompt prompt // what is being asked, if anything

	details *details // what was read last, of whichever job
	subject subject

	reading   bool
	since     time.Time // when the read under way began
	due       time.Time // when the tree or list is to be read
	detailDue time.Time // when the details are
	err       error     // of the last read of the tree or list

	status status
	acting bool
	sent   []string // messages, for the arrow keys
}

// subject is the selected row and what follows from its picture.
type subject struct {
	row         row
	picture     *picture // nil if the job's tree is not known
	why         []explain.Because
	fed, feeds  []wire
	of          key
	fromPicture *picture
}

// status is the line that says what an action came to.
type status struct {
	tone tone
	text string
	at   time.Time
}

// tone is how something is said.
type tone byte

const (
	note tone = iota
	good
	bad
	busy
)

// statusTime is how long the status line stays.
const statusTime = 15 * time.Second

// New returns a view that has not read anything yet.
func New(cfg Config) *Model {
	if cfg.Interval == 0 {
		cfg.Interval = time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Tick == nil {
		cfg.Tick = tea.Tick
	}
	m := &Model{cfg: cfg, now: cfg.Now(), list: newPlace("")}
	m.here = m.list
	if cfg.Job != "" {
		m.here = newPlace(cfg.Job)
	}
	return m
}

// beatMsg makes the clock on the screen go on.
type beatMsg struct{}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.tick(), m.next()) }

func (m *Model) tick() tea.Cmd {
	d := max(min(m.cfg.Interval, beat), minBeat)
	return m.cfg.Tick(d, func(time.Time) tea.Msg { return beatMsg{} })
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.cfg.Now()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case beatMsg:
		cmd = m.tick()
	case reading:
		m.take(msg)
	case acted:
		m.acting, m.due, m.detailDue = false, time.Time{}, time.Time{} // to see what it did
		if m.say(good, msg.text); msg.err != nil {
			m.say(bad, words(msg.err))
		}
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.paste(m, msg.Content)
		}
	default:
		return m, nil
	}
	m.settle()
	return m, tea.Batch(cmd, m.next())
}

// say puts something into the status line.
func (m *Model) say(t tone, text string) { m.status = status{t, text, m.now} }

// take takes what a read brought.
func (m *Model) take(r reading) {
	m.reading = false
	if !r.whole {
		m.details, m.detailDue = r.details, m.now.Add(max(m.cfg.Interval, min(restOf*r.took, maxRest)))
		return
	}
	if r.root != m.here.root {
		return // the user is elsewhere by now
	}
	m.due = m.now.Add(m.cfg.Interval)
	if m.err = r.err; r.err == nil {
		m.here.read(r.picture, m.now, r.took)
		m.due = m.now.Add(m.pause())
	}
	if errors.Is(r.err, job.ErrNotFound) && m.here != m.list {
		m.err = nil
		m.say(bad, fmt.Sprintf("job %s is gone: somebody deleted it", r.root))
		m.back()
	}
}

// pause is how long the place that is shown is not read after it was.
func (m *Model) pause() time.Duration { return max(m.cfg.Interval, restOf*m.here.took) }

// next starts a read if one is due and none is under way.
func (m *Model) next() tea.Cmd {
	if m.reading {
		return nil
	}
	r := request{whole: !m.now.Before(m.due), root: m.here.root, limit: m.here.limit}
	if !r.whole {
		known := wants{}
		if m.details != nil {
			known = m.details.of
		}
		r.wants = m.wants()
		if r.id == "" || m.err != nil || r.wants == known && m.now.Before(m.detailDue) {
			return nil
		}
	}
	m.reading, m.since = true, m.now
	return m.read(r)
}

// wants are the details to read now.
func (m *Model) wants() wants {
	r, ok := m.here.selected()
	if !ok || r.finished > 0 {
		return wants{}
	}
	s := m.stacked()
	w := wants{id: r.node.info.ID, log: s || m.pane == paneLog}
	w.family = m.here == m.list && (s || m.pane == paneEdges || m.pane == paneWhy)
	if m.peek.Job == w.id {
		w.peek = m.peek
	}
	return w
}

// settle brings what follows from the rest of the model up to date.
func (m *Model) settle() {
	m.here.show(m.bodyHeight())
	r, ok := m.here.selected()
	if !ok {
		m.subject = subject{}
		return
	}
	pic := m.here.picture
	if m.here == m.list {
		if pic = nil; m.details != nil && m.details.of.id == r.node.info.ID {
			pic = m.details.family
		}
	}
	if m.subject.of != r.key() {
		m.scroll, m.peek = 0, job.PortRef{}
		if m.pane == panePeek {
			m.pane = panePorts
		}
	}
	if m.subject.of != r.key() || m.subject.fromPicture != pic || pic == nil {
		s := subject{row: r, of: r.key(), fromPicture: pic, picture: pic}
		if pic != nil && pic.nodes[r.node.info.ID] != nil {
			n := pic.nodes[r.node.info.ID]
			s.why = pic.words.Why(n.info.ID)
			s.fed, s.feeds = pic.wires(n)
		}
		m.subject = s
	}
	m.subject.row = r
}

// enter shows the tree of a job.
func (m *Model) enter(id job.ID) {
	m.here = newPlace(id)
	m.due = time.Time{}
}

// back shows the list.
func (m *Model) back() {
	if m.here != m.list {
		m.here = m.list
		m.due = time.Time{}
	}
}
