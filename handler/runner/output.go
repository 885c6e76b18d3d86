package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/sandbox"
	"github.com/weirworks/weir/port"
)

// The streams on which a process prints.
const (
	stdout = iota
	stderr
	streams
)

// printed is what a payload printed on one stream.
type printed struct {
	id    string
	lines []numbered
}

// numbered is a line with its number among those of both streams, in the order in which they came.
type numbered struct {
	handler.Line
	n int
}

// prints is what was read from both streams. The mu of its process guards it.
type prints struct {
	last  [streams][]numbered // since the last mark
	marks [streams]int        // that were read
	lines int
	bytes map[int]int // that were printed between two marks, on both streams, by the number of marks before; while one stream is not past it
}

// add adds what was read from a stream, if it is a line, and returns how many bytes were printed since the last mark.
func (p *prints) add(stream int, text []byte, isLine bool) int {
	if isLine {
		if p.bytes == nil {
			p.bytes = map[int]int{}
		}
		p.bytes[p.marks[stream]] += len(text) + 1
		p.last[stream] = append(p.last[stream], numbered{handler.Line{Text: strings.ToValidUTF8(string(text), "\uFFFD"), Stderr: stream == stderr}, p.lines})
		p.lines++
	}
	return p.bytes[p.marks[stream]]
}

// cut returns what a stream has up to a mark.
func (p *prints) cut(stream int) []numbered {
	lines, n := p.last[stream], p.marks[stream]
	p.last[stream] = nil
	p.marks[stream]++
	if p.marks[stdout] > n && p.marks[stderr] > n {
		delete(p.bytes, n)
	}
	return lines
}

// inOrder are lines in the order in which they came.
func inOrder(all []numbered) []handler.Line {
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	var lines []handler.Line
	for _, one := range all {
		lines = append(lines, one.Line)
	}
	return lines
}

// texts are lines without where they were printed.
func texts(lines []handler.Line) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = line.Text
	}
	return all
}

// errForged is the end of a process whose code wrote what only the runner's part of it writes.
var errForged = &crash{why: "it wrote to file descriptor 3, which is the runner's"}

// crash is the end of a process that was to go on.
type crash struct {
	why    string
	output []handler.Line // of the payload that it ran
}

// Error implements error.
func (d *crash) Error() string {
	text := d.why
	if len(d.output) > 0 {
		text += "; it printed last: " + strings.Join(texts(ending(d.output, 3)), " / ")
	}
	return short(text)
}

// ending are the last n lines, before others those of standard error: which stream was read first is chance, and they say what went wrong.
func ending(lines []handler.Line, n int) []handler.Line {
	errs := 0
	for _, line := range lines {
		if line.Stderr {
			errs++
		}
	}
	room := map[bool]int{true: min(errs, n), false: n - min(errs, n)}
	var last []handler.Line
	for _, line := range slices.Backward(lines) {
		if room[line.Stderr] > 0 {
			room[line.Stderr]--
			last = append(last, line)
		}
	}
	slices.Reverse(last)
	return last
}

// reason is the error without what was printed.
func (d *crash) reason() string { return short(d.why) }

// short shortens what may be of any length, and makes it UTF-8.
func short(text string) string {
	if len(text) > 2000 {
		text = text[:2000] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// died says how the process ended.
func (proc *process) died() *crash {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return &crash{why: proc.why, output: inOrder(slices.Concat(proc.prints.last[stdout], proc.prints.last[stderr]))}
}

// output waits for what was printed up to the mark with an ID, on both streams.
func (proc *process) output(id string, late <-chan time.Time) ([]handler.Line, error) {
	var all []numbered
	for stream := range proc.printed {
		out, err := next(proc, proc.printed[stream], late)
		if died := new(crash); errors.As(err, &died) {
			died.output = append(inOrder(all), died.output...)
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(out.id) != id {
			return nil, errForged
		}
		all = append(all, out.lines...)
	}
	return inOrder(all), nil
}

// readOutput reads what is printed on a stream, and splits it at marks.
func (proc *process) readOutput(stream int, from io.Reader) {
	lines := bufio.NewReaderSize(from, 64<<10)
	mark := []byte(strings.TrimSpace(sandbox.Mark(proc.token, "")) + " ")
	most := int(proc.options.Output)
	for {
		line, err := readLine(lines, most+len(mark)+256)
		text, id, marked := bytes.Cut(line, mark)
		proc.mu.Lock()
		size, of := proc.prints.add(stream, text, len(text) > 0 || !marked && err == nil), proc.current()
		var all []numbered
		if marked {
			all = proc.prints.cut(stream)
		}
		proc.mu.Unlock()
		if errors.Is(err, errLong) || size > most+1 {
			proc.kill("it printed more than %d bytes", most)
			return
		}
		if far, ok := (handler.Line{Text: string(text), Stderr: stream == stderr}).Progress(); ok && of != nil && of.Progress != nil {
			of.Progress(far)
		}
		if marked {
			proc.printed[stream] <- printed{string(id), all}
		}
		if err != nil {
			return
		}
	}
}

// errLong is the error of a line that is too long.
var errLong = errors.New("the line is too long")

// readLine reads a line without its newline.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// resultOf is what came of a payload, whose result is one that can be a message.
func resultOf(done sandbox.Done) handler.Result {
	if done.Result != nil && port.Check(done.Result) != nil { // it is JSON, and half a character may be in it
		done = sandbox.NotText(done)
	}
	return handler.Result{Status: done.Status, Value: done.Result, Error: strings.TrimPrefix(done.Error, "; ")}
}
