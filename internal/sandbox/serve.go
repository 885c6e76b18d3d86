package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What goes through the pipes of a process that runs scripts: a line of JSON each. The first is a Hello, then come a Batch and its Jobs, again
// and again. The answers on file descriptor 3 are a Done when it is ready, one for each job, and one behind the batch. What a job prints
// ends, on standard output and on standard error, with a line that is its Mark, and what is printed behind the last job of a batch with a Mark
// without an ID.
type (
	// Hello has the scripts.
	Hello struct {
		Token      string         `json:"token"`
		Before     string         `json:"before"`
		BeforeEach string         `json:"beforeEach"`
		Body       string         `json:"body"`
		AfterEach  string         `json:"afterEach"`
		MaxResult  int            `json:"maxResult"`
		Exits      map[string]int `json:"exits,omitempty"`
	}
	// Batch says how many jobs come.
	Batch struct {
		Batch int `json:"batch"`
	}
	// Job is a payload to run.
	Job struct {
		ID      string          `json:"id"`
		Try     int             `json:"try"`
		Payload json.RawMessage `json:"payload"`
	}
	// Done is what came of a job; of what goes before and behind jobs it has no ID.
	Done struct {
		ID     string          `json:"id"`
		Status int             `json:"status"`
		Result json.RawMessage `json:"result,omitempty"`
		Error  string          `json:"error,omitempty"`
		Thrown bool            `json:"thrown,omitempty"` // the process may be in disorder
	}
)

// Mark is the line that ends what a job prints.
func Mark(token, id string) string { return "\x00weir " + token + " " + id }

// loop runs scripts, each as a program of its own.
type loop struct {
	argv    []string
	first   bool // of its namespace of processes
	hello   Hello
	results *json.Encoder
}

// Serve runs scripts as it is told on standard input, until that ends: each by argv with the script behind it. first tells that it is the first
// process of a namespace: then what a script leaves behind is killed.
func Serve(argv []string, first bool) {
	l := &loop{argv: argv, first: first, results: json.NewEncoder(os.NewFile(3, "results"))}
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 64<<10))
	if in.Decode(&l.hello) != nil {
		return
	}
	_ = l.results.Encode(l.part(l.hello.Before))
	shared := left()
	for {
		var b Batch
		if in.Decode(&b) != nil {
			return
		}
		start := l.part(l.hello.BeforeEach)
		ofBatch := left()
		for range b.Batch {
			var j Job
			if in.Decode(&j) != nil {
				return
			}
			done := l.body(start, j, ofBatch)
			l.mark(j.ID)
			_ = l.results.Encode(done)
		}
		after := l.part(l.hello.AfterEach)
		after.Thrown = tidy(shared) != nil || after.Thrown
		l.mark("")
		_ = l.results.Encode(after)
	}
}

// body runs a job, unless what goes before it has failed, and removes the files that it leaves.
func (l *loop) body(start Done, j Job, stay map[string]bool) Done {
	done := start
	if start.Status/100 == 2 {
		done = l.run(l.hello.Body, j)
	}
	done.ID = j.ID
	// Like a process of another language, this one is replaced after an error: what Before has left may be spoilt.
	done.Thrown = tidy(stay) != nil || done.Thrown || l.hello.Before != "" && done.Status/100 == 5
	return done
}

// left are the names of what there is in the working directory.
func left() map[string]bool {
	names := map[string]bool{}
	entries, _ := os.ReadDir(".") // without a name nothing is kept
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// tidy removes what there is in the working directory besides the names that are to stay, so that no payload sees the files of another one, or
// lacks the room that they take.
func tidy(stay map[string]bool) error {
	entries, err := os.ReadDir(".")
	errs := []error{err}
	for _, e := range entries {
		if !stay[e.Name()] {
			errs = append(errs, os.RemoveAll(e.Name()))
		}
	}
	return errors.Join(errs...)
}

// mark ends what was printed for a job, or behind the jobs of a batch.
func (l *loop) mark(id string) {
	for _, stream := range []*os.File{os.Stdout, os.Stderr} {
		_, _ = fmt.Fprintln(stream, Mark(l.hello.Token, id)) // the runner has gone, or will miss it
	}
}

// part runs what goes before or behind the jobs of a batch, if there is anything.
func (l *loop) part(script string) Done {
	if script == "" {
		return Done{Status: 200}
	}
	return l.run(script, Job{})
}

// run runs a script and returns what came of it.
func (l *loop) run(script string, j Job) (done Done) {
	read, write, err := os.Pipe()
	if err != nil {
		return Done{Status: 500, Error: err.Error(), Thrown: true}
	}
	argv := slices.Concat(l.argv, []string{script})
	cmd := &exec.Cmd{
		Path: argv[0], Args: argv, Env: append(os.Environ(), "WEIR_JOB="+j.ID, fmt.Sprintf("WEIR_TRY=%d", j.Try)),
		Stdin: strings.NewReader(text(j.Payload)), Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{write},
	}
	err = cmd.Start()
	_ = write.Close()
	kept := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(io.LimitReader(read, int64(l.hello.MaxResult)+1<<10))
		_, _ = io.Copy(io.Discard, read)
		kept <- all
	}()
	if err == nil {
		err = cmd.Wait()
	}
	if l.first {
		killRest() // which may hold the pipe
	} else {
		_ = read.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // what it left behind may hold the pipe
	}
	out := <-kept
	_ = read.Close()
	return l.done(cmd, err, out)
}

// done is what a program says that has ended: with its exit code, or in the last line that it wrote to file descriptor 3.
func (l *loop) done(cmd *exec.Cmd, err error, out []byte) (d Done) {
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState == nil:
		return Done{Status: 500, Error: err.Error(), Thrown: true}
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		d = Done{Status: 500, Error: "its process ended: " + exit.String()}
	default:
		code := cmd.ProcessState.ExitCode()
		d.Status = l.status(code)
		if d.Status/100 != 2 {
			d.Error = fmt.Sprintf("its process ended with exit code %d", code) + ofSignal(code)
		}
	}
	out = bytes.TrimSuffix(out, []byte("\n"))
	switch {
	case len(out) == 0:
		return d
	case !utf8.Valid(out):
		return NotText(d)
	}
	var said struct {
		Status int             `json:"status"`
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
	last := out[bytes.LastIndexByte(out, '\n')+1:]
	if json.Unmarshal(last, &said) == nil && said.Status != 0 {
		return Done{Status: said.Status, Result: said.Result, Error: said.Error}
	}
	d.Result, _ = json.Marshal(string(out))
	return d
}

// NotText is what came of a job whose result is not UTF-8: it is not kept, and a job that was done has failed.
func NotText(d Done) Done {
	const why = "the result is not valid UTF-8: encode what is binary, as base64 for instance"
	d.Result = nil
	if d.Status/100 == 2 {
		d.Status, d.Error = 422, why
	} else {
		d.Error += "; " + why
	}
	return d
}

// ofSignal says which limit was reached if an exit code of a shell stands for the signal that it sends.
func ofSignal(code int) string {
	const fileSize = 25 // SIGXFSZ, where there is a sandbox
	if code == 128+fileSize {
		return ": it wrote a file larger than options.disk"
	}
	return ""
}

func (l *loop) status(code int) int {
	if status, ok := l.hello.Exits[fmt.Sprint(code)]; ok {
		return status
	}
	return 500
}

// text is a payload as a program reads it: a line, of a string its text.
func text(payload json.RawMessage) string {
	var s string
	if json.Unmarshal(payload, &s) == nil {
		return s + "\n"
	}
	return string(payload) + "\n"
}
