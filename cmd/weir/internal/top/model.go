// Package top is the live view of Weir in a terminal: trees of jobs as lists and as pictures, queues, engines and triggers,
// beside each what is known of what is selected, and keys to steer it.
package top

import (
	"errors"
	"fmt"
	"maps"
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
	listStep = 100                    // that many more trees are listed each time the end is reached
	restOf   = 4                      // a read is followed by a pause of that many times what it took
	maxRest  = 10 * time.Second       // between two reads of details, whatever they took
	patience = 3 * time.Second        // a read that takes longer is late
	tick     = time.Second            // the clock on the screen
	statsGap = 2 * time.Second        // at least between two reads of counters, and of triggers
	minTick  = 100 * time.Millisecond // nobody sees more
)

// Model is the view. It is used by one goroutine: that of the tea.Program that runs it.
type Model struct {
	cfg           Config
	now           time.Time
	width, height int

	view view
	list *place
	here *place // list, or a tree
	tree *place // the tree that was shown last, for the graph
	over overview
	fire fires
	tabs [views]table

	pane   pane
	peek   job.PortRef // the port that is peeked at, if any
	scroll int         // lines that the pane is scrolled, the log backwards
	hidden int         // lines of the pane that there was no room for when it was drawn
	zoom   bool        // the pane fills the screen
	help   bool
	prompt prompt // what is being asked, if anything
	zones  []zone // of the last frame, for the mouse

	details *details // what was read last, of whichever job
	subject subject

	reading   bool
	topic     topic     // of the read under way
	since     time.Time // when it began
	detailDue time.Time // when the details are to be read

	status status
	acting bool
	sent   []string // messages, for the arrow keys
	typed  []string // commands, for the same
}

// subject is the selected row and what follows from its picture.
type subject struct {
	row         row
	picture     *picture // nil if the job's tree is not known
	why         []explain.Because
	lock        *job.LockInfo // that why knows of
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
		m.enter(cfg.Job)
	}
	return m
}

// tickMsg makes the clock on the screen go on.
type tickMsg struct{}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.tick(), m.next()) }

func (m *Model) tick() tea.Cmd {
	d := max(min(m.cfg.Interval, tick), minTick)
	return m.cfg.Tick(d, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.cfg.Now()
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		cmd = m.tick()
	case reading:
		m.take(msg)
	case acted:
		m.acting = false
		m.refresh() // to see what it did
		if m.say(good, msg.text); msg.err != nil {
			m.say(bad, words(msg.err))
		}
	case opened:
		if m.say(note, ""); msg.err != nil {
			m.say(bad, words(msg.err))
		} else {
			m.open(msg.id)
		}
	case tea.KeyPressMsg:
		if m.status.tone != busy && msg.String() != redrawKey { // it was about what was done before
			m.status = status{}
		}
		cmd = m.key(msg)
	case tea.MouseClickMsg:
		cmd = m.click(msg)
	case tea.MouseWheelMsg:
		m.wheel(msg)
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

// refresh has everything read anew.
func (m *Model) refresh() {
	m.here.due, m.over.due, m.fire.due, m.detailDue = time.Time{}, time.Time{}, time.Time{}, time.Time{}
}

// take takes what a read brought.
func (m *Model) take(r reading) {
	m.reading = false
	switch r.topic {
	case ofDetails:
		m.details, m.detailDue = r.details, m.now.Add(max(m.cfg.Interval, min(restOf*r.took, maxRest)))
	case ofStats:
		if m.over.done(m, r); r.err == nil {
			m.over.stats = r.stats
		}
	case ofTriggers:
		if m.fire.done(m, r); r.err == nil {
			m.fire.all = r.triggers
		}
	default:
		m.takePlace(r)
	}
}

// done notes a read of counters or triggers.
func (s *stamp) done(m *Model, r reading) {
	if s.err = r.err; r.err == nil {
		s.good(m.now, r.took)
	}
	s.due = m.now.Add(s.pause(max(m.cfg.Interval, statsGap)))
}

func (m *Model) takePlace(r reading) {
	p := m.here
	if r.root != p.root || r.root == "" && !sameFilter(r.filter, p.which) {
		return // the user is elsewhere by now
	}
	if p.err = r.err; r.err == nil {
		old := p.picture
		if p.read(r.picture, m.now, r.took); old != nil && r.picture.drawn == nil {
			r.picture.drawn = old.drawn
		}
	}
	p.due = m.now.Add(m.cfg.Interval)
	if r.err == nil {
		p.due = m.now.Add(p.pause(m.cfg.Interval))
		if d := m.drawing(); d != nil && (r.graph == nil || !maps.Equal(d.folds, r.graph.folds)) {
			p.due = m.now // it was asked for meanwhile
		}
	}
	if errors.Is(r.err, job.ErrNotFound) && p != m.list {
		p.err = nil
		m.say(bad, fmt.Sprintf("job %s is gone: somebody deleted it", r.root))
		m.tree = nil
		m.view = viewTree
		m.back()
	}
}

// next starts a read if one is due and none is under way.
func (m *Model) next() tea.Cmd {
	if m.reading {
		return nil
	}
	r, ok := m.wanted()
	if !ok {
		return nil
	}
	m.reading, m.since, m.topic = true, m.now, r.topic
	return m.read(r)
}

// wanted is what to read now: what is looked at first.
func (m *Model) wanted() (request, bool) {
	due := func(s *stamp) bool { return !m.now.Before(s.due) }
	jobs := m.view == viewTree || m.view == viewGraph
	switch {
	case jobs && due(&m.here.stamp):
		return request{topic: ofPlace, root: m.here.root, filter: m.here.which, limit: m.here.limit, graph: m.drawing()}, true
	case m.view == viewTriggers && due(&m.fire.stamp):
		return request{topic: ofTriggers, limit: triggers}, true
	}
	known := wants{}
	if m.details != nil {
		known = m.details.of
	}
	w := m.wants()
	details := w.id != "" && m.here.err == nil
	switch {
	case details && w != known:
		return request{topic: ofDetails, wants: w}, true
	case due(&m.over.stamp):
		return request{topic: ofStats}, true
	case details && !m.now.Before(m.detailDue):
		return request{topic: ofDetails, wants: w}, true
	}
	return request{}, false
}

// wants are the details to read now.
func (m *Model) wants() wants {
	r, ok := m.here.selected()
	if !ok || r.finished > 0 || m.view != viewTree && m.view != viewGraph {
		return wants{}
	}
	s := m.stacked()
	w := wants{id: r.node.info.ID}
	switch {
	case m.zoom && m.pane == paneLog:
		w.log = fullLog
	case s || m.pane == paneLog:
		w.log = logLines
	}
	w.family = m.here == m.list && (s || m.pane == paneEdges || m.pane == paneWhy)
	if m.peek.Job == w.id {
		w.peek = m.peek
	}
	return w
}

// settle brings what follows from the rest of the model up to date.
func (m *Model) settle() {
	if m.view == viewGraph {
		m.intoGraph()
	}
	m.here.show(m.rowsHeight())
	m.layTable()
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
			m.pane = paneWhy
		}
	}
	var lock *job.LockInfo
	if m.details != nil && m.details.of.id == r.node.info.ID {
		lock = m.details.lock
	}
	if m.subject.of != r.key() || m.subject.fromPicture != pic || m.subject.lock != lock || pic == nil {
		s := subject{row: r, of: r.key(), fromPicture: pic, picture: pic, lock: lock}
		if pic != nil && pic.nodes[r.node.info.ID] != nil {
			n := pic.nodes[r.node.info.ID]
			if pic.words.Locks = nil; lock != nil {
				pic.words.Locks = map[job.ID]job.LockInfo{n.info.ID: *lock}
			}
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
	m.tree = m.here
}

// back shows the list.
func (m *Model) back() {
	if m.here != m.list {
		m.here = m.list
		m.here.due = time.Time{}
	}
}
