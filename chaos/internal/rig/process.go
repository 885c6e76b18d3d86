package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirworks/weir/job"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// process is a process of the crew.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string   // of an actor: its answers
	gone    chan struct{} // closed when it has ended and all it said was heard
	file    string        // its standard error
	created time.Time

	mu       sync.Mutex
	frozen   func(job.ID)   // what is done when it asks to be stopped
	running  map[job.ID]int // its runs in progress
	told     bool           // to end
	stopped  bool           // by SIGSTOP
	farewell *crew.Farewell
}

// spawn starts this program again as a process of the crew. heard is called for each run that
// a worker begins, frozen when it asks to be stopped.
func spawn(dir, role string, env []string, heard func(p *process, id job.ID), frozen func(p *process, id job.ID)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(dir, role+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{
		cmd: exec.Command(self), gone: make(chan struct{}), file: log.Name(), running: map[job.ID]int{},
		lines: make(chan string, 1), created: time.Now(),
	}
	p.frozen = func(id job.ID) { frozen(p, id) }
	p.cmd.Env = append(append(os.Environ(), crew.RoleEnv+"="+role, "GOTRACEBACK=all", "GOMAXPROCS=2"), env...)
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a %s: %w", role, err)
	}
	go func() {
		defer close(p.gone)
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.hear(lines.Text(), role, heard)
		}
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

func (p *process) hear(line, role string, heard func(*process, job.ID)) {
	if role == crew.RoleActor {
		p.lines <- line
		return
	}
	if id, ok := strings.CutPrefix(line, crew.Freeze); ok {
		p.frozen(job.ID(id))
		return
	}
	id, begun := strings.CutPrefix(line, crew.Begun)
	if begun {
		p.count(job.ID(id), 1)
		heard(p, job.ID(id))
	} else if id, ended := strings.CutPrefix(line, crew.Ended); ended {
		p.count(job.ID(id), -1)
	} else if text, ok := strings.CutPrefix(line, crew.Bye); ok {
		var f crew.Farewell
		if json.Unmarshal([]byte(text), &f) == nil {
			p.mu.Lock()
			p.farewell = &f
			p.mu.Unlock()
		}
	}
}

func (p *process) count(id job.ID, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[id] += by; p.running[id] <= 0 {
		delete(p.running, id)
	}
}

// atWork returns the jobs whose runs are in progress, or were when the process ended.
func (p *process) atWork() []job.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]job.ID, 0, len(p.running))
	for id := range p.running {
		ids = append(ids, id)
	}
	return ids
}

// signal sends a signal. It does nothing when the process has ended.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// alive tells whether the process is to be reckoned with: neither ended nor told to.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gone:
		return false
	default:
		return !p.told
	}
}

// tell tells the process to end, and notes that it was told.
func (p *process) tell(s syscall.Signal) {
	p.mu.Lock()
	p.told = true
	p.mu.Unlock()
	p.signal(s)
}

// pause stops the process for a while. It returns false if it is stopped already.
func (p *process) pause(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.stopped = true
	p.signal(syscall.SIGSTOP)
	time.AfterFunc(d, p.resume)
	return true
}

// isStopped tells whether the process is stopped.
func (p *process) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = false
	p.signal(syscall.SIGCONT)
}

// notCommitted is what a worker writes of a run whose commit was refused.
const notCommitted = "run was not committed"

// wrote returns what a process wrote if it ended by a panic, or "", and how many of its runs were refused.
func (p *process) wrote() (panicked string, refused int) {
	raw, err := os.ReadFile(p.file)
	if err != nil {
		return err.Error(), 0
	}
	refused = bytes.Count(raw, []byte(notCommitted))
	for _, mark := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE"} {
		if at := bytes.Index(raw, []byte(mark)); at >= 0 && (at == 0 || raw[at-1] == '\n') {
			return fmt.Sprintf("%s: %s", filepath.Base(p.file), raw[at:min(len(raw), at+2000)]), refused
		}
	}
	return "", refused
}

// tidy removes what an uninteresting process has written.
func (p *process) tidy() { _ = os.Remove(p.file) }
