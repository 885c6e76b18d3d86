package runner

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/sandbox"
)

//go:embed shim.js
var shimJS string

//go:embed shim.py
var shimPy string

// process is one that has the code of a handler.
type process struct {
	pool    *Pool
	handler *handler.Stored
	options handler.Options
	user    sandbox.User // where each can have one of its own
	dir     string
	token   string
	sb      *sandbox.Process
	in      *bufio.Writer
	results chan sandbox.Done
	printed [streams]chan printed
	ran     int           // payloads
	pace    pace          // of the last batch
	limit   time.Duration // of what it was asked for last
	expiry  *time.Timer

	mu     sync.Mutex
	why    string // it was killed
	prints prints
	tasks  []*task         // of its batch
	before int             // marks on standard output before those of its batch
	ending context.Context //nolint:containedctx // ends when it was killed, or has ended and all that it said was read
	ends   context.CancelFunc
	exited chan struct{}
}

// command is how a language is started, with the paths that it needs to read.
func (p *Pool) command(lang string) (argv []string, loop bool, err error) {
	argv = p.cfg.Commands[lang]
	if argv == nil {
		argv = defaultCommands[lang]
	}
	if argv == nil {
		known := slices.Clone(handler.Languages)
		for name := range p.cfg.Commands {
			known = append(known, name)
		}
		slices.Sort(known)
		return nil, false, fmt.Errorf("language %s is not configured here: this runner has %s; --handler-command configures more", lang, strings.Join(slices.Compact(known), ", "))
	}
	path, err := find(argv[0])
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("the program of language %s: %w", lang, err)
	}
	argv = append([]string{path}, argv[1:]...)
	switch lang {
	case handler.Node:
		return append(argv, "-e", shimJS), false, nil
	case handler.Python:
		return append(argv, "-I", "-c", shimPy), false, nil
	}
	return argv, true, nil
}

// systemPath is where programs are looked for before the PATH of the runner, which may lead to its home.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// find looks for a program.
func find(name string) (path string, err error) {
	if !strings.ContainsRune(name, filepath.Separator) {
		for _, dir := range filepath.SplitList(systemPath) {
			if path, err = exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(name)
}

// environ is the environment of a process: not that of the engine, which has secrets.
func (p *Pool) environ(dir string, h *handler.Stored) ([]string, error) {
	env := []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "WEIR_TYPE=" + h.Type}
	for name, value := range h.Definition.Options.Env {
		env = append(env, name+"="+value)
	}
	for _, name := range h.Definition.Options.Secrets {
		value, ok := "", false
		if p.cfg.Secret != nil {
			value, ok = p.cfg.Secret(name)
		}
		if !ok {
			return nil, fmt.Errorf("secret %s is not set where the runner looks for it", name)
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// start starts a process for a task, and waits until it has run what comes before all.
func (p *Pool) start(t *task) (*process, error) {
	d := &t.handler.Definition
	if d.Options.Network && !p.cfg.Network {
		return nil, errors.New("it asks for the network, which this runner does not allow: --handler-network does")
	}
	argv, loop, err := p.command(d.Lang)
	if err != nil {
		return nil, err
	}
	proc := &process{pool: p, handler: t.handler, options: t.options, limit: time.Duration(t.options.Timeout), token: rand.Text(), results: make(chan sandbox.Done, 1), exited: make(chan struct{})}
	proc.ending, proc.ends = context.WithCancel(context.Background())
	for i := range proc.printed {
		proc.printed[i] = make(chan printed, 1)
	}
	if err := p.place(proc); err != nil {
		return nil, err
	}
	env, err := p.environ(proc.dir, t.handler)
	if err == nil {
		proc.sb, err = sandbox.Start(sandbox.Command{
			Argv: argv, Loop: loop, Env: env, Dir: proc.dir, User: proc.user.ID,
			Limits: sandbox.Limits{
				Memory: t.options.Memory, Disk: t.options.Disk, Processes: t.options.Processes, Network: t.options.Network,
				Read: []string{filepath.Dir(argv[0])},
			},
		}, p.abilities)
	}
	if err != nil {
		p.leave(proc)
		return nil, fmt.Errorf("starting its process: %w", err)
	}
	proc.in = bufio.NewWriterSize(proc.sb.Stdin, 64<<10)
	go proc.watch()
	if err := proc.ready(d); err != nil {
		proc.end()
		return nil, err
	}
	return proc, nil
}

// place gives a process its directory and, where it can have one, its user.
func (p *Pool) place(proc *process) (err error) {
	if proc.dir, err = os.MkdirTemp(p.dir, ""); err != nil {
		return fmt.Errorf("a directory for its process: %w", err)
	}
	if !p.abilities.Root {
		return nil
	}
	if proc.user, err = sandbox.TakeUser(); err == nil {
		err = os.Chown(proc.dir, proc.user.ID, proc.user.ID)
	}
	if err != nil {
		p.leave(proc)
	}
	return err
}

func (p *Pool) leave(proc *process) {
	if err := os.RemoveAll(proc.dir); err != nil {
		p.cfg.Logger.Warn("the directory of a handler's process is left", "error", err)
	}
	if proc.user.Closer != nil {
		_ = proc.user.Close()
	}
}

// ready gives a process its code.
func (proc *process) ready(d *handler.Definition) error {
	exits := map[string]int{"0": 200, "75": 199}
	for code, status := range d.Options.Exits {
		exits[code] = status
	}
	err := proc.send(sandbox.Hello{
		Token: proc.token, Before: d.Before, BeforeEach: d.BeforeEach, Body: d.Body, AfterEach: d.AfterEach,
		MaxResult: handler.MaxResult, Exits: exits,
	})
	if err == nil {
		err = proc.in.Flush()
	}
	// A process that is dead tells more than that nothing can be written to it.
	done, died := next(proc, proc.results, time.After(time.Duration(proc.options.Timeout)))
	switch {
	case died != nil:
		return died
	case err != nil:
		return err
	case handler.CodeOf(done.Status) != handler.OK:
		proc.kill("its code cannot run")
		proc.drain() // what it printed is part of why
		return &crash{why: "its code cannot run: " + done.Error, output: proc.died().output}
	}
	return nil
}

func (proc *process) send(v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		_, err = proc.in.Write(append(raw, '\n'))
	}
	return err
}

// watch reads what the process says, until it has ended.
func (proc *process) watch() {
	defer close(proc.exited)
	var all sync.WaitGroup
	all.Go(proc.readResults)
	all.Go(func() { proc.readOutput(stdout, proc.sb.Stdout) })
	all.Go(func() { proc.readOutput(stderr, proc.sb.Stderr) })
	err := proc.sb.Wait()
	proc.sb.Kill() // what it has left behind, which would hold its pipes
	proc.mu.Lock()
	if proc.why == "" {
		proc.why = "its process ended by itself, without a result"
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			proc.why = "its process ended: " + exit.String()
		}
	}
	proc.mu.Unlock()
	late := time.AfterFunc(time.Second, proc.sb.Close) // without namespaces something may have escaped, and hold them
	all.Wait()                                         // what it said before it died counts
	late.Stop()
	proc.ends()
}

// kill ends the process, for a reason.
func (proc *process) kill(format string, args ...any) {
	proc.mu.Lock()
	if proc.why == "" {
		proc.why = fmt.Sprintf(format, args...)
	}
	proc.mu.Unlock()
	proc.ends()
	proc.sb.Kill()
}

// end ends the process, and returns when it has ended and all of it is gone.
func (proc *process) end() {
	proc.kill("it was not needed any more")
	proc.drain()
	proc.sb.Close()
	proc.pool.leave(proc)
}

// readResults reads file descriptor 3.
func (proc *process) readResults() {
	lines := bufio.NewReaderSize(proc.sb.Results, 64<<10)
	for {
		line, err := readLine(lines, 2*handler.MaxResult)
		if errors.Is(err, errLong) {
			proc.kill("it wrote a result of more than %d bytes", 2*handler.MaxResult)
		}
		if err != nil {
			return
		}
		var done sandbox.Done
		if err := json.Unmarshal(line, &done); err != nil {
			proc.kill("it wrote to file descriptor 3, which is the runner's: %.100q", line)
			return
		}
		proc.results <- done
	}
}

// gone tells whether the process has ended.
func (proc *process) gone() bool {
	select {
	case <-proc.exited:
		return true
	default:
		return false
	}
}

// next waits for what the process says next, in one of its channels.
func next[T any](proc *process, said <-chan T, late <-chan time.Time) (one T, err error) {
	select {
	case one = <-said:
		return one, nil
	case <-late:
		proc.kill("it took longer than %s", proc.limit)
	case <-proc.pool.ctx.Done():
		proc.kill("the runner of handlers is stopping")
	case <-proc.ending.Done(): // what it still says is drained: else it would wait for that to be heard
		select {
		case one = <-said: // it came before
			return one, nil
		default:
		}
	}
	proc.drain()
	return one, proc.died()
}

// allow lets what comes next take a time, and no longer.
func (proc *process) allow(timer *time.Timer, limit time.Duration) {
	proc.limit = limit
	timer.Reset(limit)
}

// drain drops what the process still says, until it has ended.
func (proc *process) drain() {
	for {
		select {
		case <-proc.results:
		case <-proc.printed[stdout]:
		case <-proc.printed[stderr]:
		case <-proc.exited:
			return
		}
	}
}

// batch runs tasks, one after the other, and returns how many have ended. With an error the process is of no use any more.
func (proc *process) batch(tasks []*task) (n int, err error) {
	proc.begin(tasks)
	sent := make(chan error, 1)
	go func() { sent <- proc.write(tasks) }()
	timer := time.NewTimer(time.Duration(proc.options.Timeout))
	defer func() {
		if wrong := proc.sent(sent, timer, err != nil); err == nil {
			err = wrong
		}
	}()
	broken := false
	began, first := time.Now(), time.Time{}
	proc.pace = pace{}
	defer func() {
		if n < len(tasks) {
			proc.pace = pace{one: time.Since(began) / time.Duration(n+1)}
		}
	}()
	for n = 0; n < len(tasks); n++ {
		t := tasks[n]
		proc.allow(timer, t.limit())
		done, err := next(proc, proc.results, timer.C)
		if err != nil {
			return n, err
		}
		lines, err := proc.output(t.ID, timer.C)
		if err != nil {
			return n, err
		}
		if done.ID != t.ID {
			return n, errForged
		}
		t.result = resultOf(done)
		t.result.Output = lines
		if len(done.Result) > handler.MaxResult {
			t.result = handler.Result{Status: 413, Error: fmt.Sprintf("the result has %d bytes, at most %d are kept", len(done.Result), handler.MaxResult), Output: lines}
		}
		if n < len(tasks)-1 { // the last one waits for what afterEach prints
			t.done()
		}
		proc.ran++
		broken = broken || done.Thrown
		switch now := time.Now(); {
		case proc.handler.Definition.BeforeEach == "":
			proc.pace = pace{one: now.Sub(began) / time.Duration(n+1)}
		case n == 0: // it waited for beforeEach, which is for all
			first, proc.pace = now, pace{one: now.Sub(began), atMost: true}
		default:
			proc.pace = pace{one: now.Sub(first) / time.Duration(n)}
		}
	}
	return len(tasks), proc.after(tasks[len(tasks)-1], timer, broken)
}

// begin makes tasks those whose lines come next.
func (proc *process) begin(tasks []*task) {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	proc.tasks, proc.before = tasks, proc.prints.marks[stdout]
}

// current is the task whose lines come on standard output, or nil: those of afterEach are of none that is not done. The mu is held.
func (proc *process) current() *task {
	if n := proc.prints.marks[stdout] - proc.before; n < len(proc.tasks) {
		return proc.tasks[n]
	}
	return nil
}

// after waits for the end of afterEach, whose output is that of the last task, and ends that task. Its result stays what it is, whatever
// comes of afterEach. With an error the process is of no use any more.
func (proc *process) after(last *task, timer *time.Timer, broken bool) error {
	defer last.done()
	proc.allow(timer, time.Duration(proc.options.Timeout))
	done, err := next(proc, proc.results, timer.C)
	var lines []handler.Line
	if err == nil {
		lines, err = proc.output("", timer.C)
	}
	if err != nil {
		if proc.pool.ctx.Err() == nil {
			last.tell("afterEach did not end: " + err.Error())
			proc.pool.cfg.Logger.Warn("afterEach of a handler did not end; its payloads keep their results, and its process is replaced", "type", proc.handler.Type, "error", err)
		}
		return err
	}
	last.result.Output = append(last.result.Output, lines...)
	if handler.CodeOf(done.Status) == handler.OK && !broken && !done.Thrown {
		return nil
	}
	if handler.CodeOf(done.Status) != handler.OK {
		why, _, _ := strings.Cut(done.Error, "\n")
		last.tell("afterEach failed: " + short(why)) // what it printed is in the log already
		proc.pool.cfg.Logger.Warn("afterEach of a handler failed", "type", proc.handler.Type, "error", (&crash{why: done.Error, output: lines}).Error())
	}
	return errors.New("it is replaced after an error")
}

// sent waits until a batch is written. A process that failed is ended, and one that answered all and does not read what it was sent, too.
func (proc *process) sent(done <-chan error, timer *time.Timer, failed bool) error {
	defer timer.Stop()
	if !failed {
		select {
		case err := <-done:
			return err
		case <-timer.C:
			proc.kill("it answered, and did not read what it was sent within %s", time.Duration(proc.options.Timeout))
		case <-proc.pool.ctx.Done():
			proc.kill("the runner of handlers is stopping")
		}
	}
	proc.sb.Kill()
	<-done
	if failed {
		return nil
	}
	return proc.died()
}

// write sends a batch.
func (proc *process) write(tasks []*task) error {
	err := proc.send(sandbox.Batch{Batch: len(tasks)})
	for _, t := range tasks {
		if err == nil {
			err = proc.send(sandbox.Job{ID: t.ID, Try: t.Try, Payload: t.Data})
		}
	}
	if err == nil {
		err = proc.in.Flush()
	}
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		err = context.Canceled
	}
	return err
}
