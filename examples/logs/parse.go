package main

import (
	"context"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	parseAtOnce = 4  // chunks of one run
	maxSamples  = 10 // lines that could not be parsed and are shown
)

// Batch is the records of one chunk.
type Batch struct {
	Records []Record `json:"records"`
}

// Reject is a line that could not be parsed.
type Reject struct {
	Name  string `json:"file"`
	Line  int64  `json:"line"`
	Error string `json:"error"`
	Text  string `json:"text"` // its beginning
}

// Rejects are the lines of one chunk that could not be parsed.
type Rejects struct {
	File    int      `json:"file"`
	N       int64    `json:"n"`
	Samples []Reject `json:"samples"` // the first of them
}

// Parse makes records of lines. Lines that are none go to a port of their own. The policy
// job.DeadLetter would do without that port, but a message here is a chunk of lines, and
// one bad line is no reason to give up the others.
type Parse struct {
	Chunks   port.In[Chunk]
	Records  port.Out[Batch]
	Rejected port.Out[Rejects]
}

// JobType implements job.Typer.
func (*Parse) JobType() string { return "logs/parse" }

// WorkerOptions implements worker.Configured.
func (*Parse) WorkerOptions() worker.Options {
	return worker.Options{Pure: true}
}

// Run parses a few chunks. When there are more, the job gets another run, unless those who
// count have enough to do.
func (p *Parse) Run(context.Context, *worker.Run) error {
	for range parseAtOnce {
		c, ok, err := p.Chunks.Read()
		if err != nil || !ok {
			return err
		}
		batch, bad := parseChunk(c)
		if len(batch.Records) > 0 {
			if err := p.Records.Write(batch); err != nil {
				return err
			}
		}
		if bad.N > 0 {
			if err := p.Rejected.Write(bad); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseChunk parses all lines but empty ones.
func parseChunk(c Chunk) (Batch, Rejects) {
	var batch Batch
	bad := Rejects{File: c.File}
	reject := func(line int64, text, why string) {
		if bad.N++; len(bad.Samples) < maxSamples {
			text = strings.ToValidUTF8(text[:min(len(text), sampleBytes)], "")
			bad.Samples = append(bad.Samples, Reject{Name: c.Name, Line: line, Error: why, Text: text})
		}
	}
	if c.Large {
		reject(c.Line, c.Text, "it is too long")
		return batch, bad
	}
	line := c.Line
	for text := range strings.Lines(c.Text) {
		if text = strings.TrimSuffix(text, "\n"); strings.TrimSpace(text) != "" {
			if r, err := parseLine(text); err != nil {
				reject(line, text, err.Error())
			} else {
				batch.Records = append(batch.Records, r)
			}
		}
		line++
	}
	return batch, bad
}

// Rejected counts the lines that could not be parsed, and remembers the first.
type Rejected struct {
	In  port.In[Rejects]
	Out port.Out[RejectedLines]
}

// RejectedLines is what Rejected knows in the end.
type RejectedLines struct {
	N       int64     `json:"n"`
	Samples []Rejects `json:"samples"` // by file and line
}

// JobType implements job.Typer.
func (*Rejected) JobType() string { return "logs/rejected" }

// WorkerOptions implements worker.Configured.
func (*Rejected) WorkerOptions() worker.Options {
	return worker.Options{Pure: true}
}

// Run adds what there is. Chunks come in any order, since there are several parsers, so
// the first lines are those with the lowest numbers.
func (r *Rejected) Run(_ context.Context, run *worker.Run) error {
	const at = "rejected"
	var all RejectedLines
	if _, err := run.State().Get(at, &all); err != nil {
		return err
	}
	for bad, err := range r.In.All() {
		if err != nil {
			return err
		}
		all.N += bad.N
		all.Samples = firstOf(append(all.Samples, bad))
	}
	if r.In.Done() {
		return r.Out.Write(all)
	}
	return run.State().Set(at, all)
}
