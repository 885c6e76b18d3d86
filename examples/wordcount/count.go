package main

import (
	"context"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// indexAt is where Count's state has its table of parts.
const indexAt = "index"

// Count adds up the counts of the words of its parts. Its state is a log: a run adds the
// words it read as pages and touches no older page, so it writes little however many
// words are known. Now and then the pages of a part are merged.
type Count struct {
	Top   int
	Words port.In[Words]
	Tops  port.Out[Tops]
}

// JobType implements job.Typer.
func (*Count) JobType() string { return "wordcount/count" }

// Tops is a page of the most frequent words of one Count. The first page has the number
// of all its different words too.
type Tops struct {
	Distinct int64 `json:"distinct,omitempty"`
	Words    Words `json:"words"`
}

// WorkerOptions implements worker.Configured.
func (*Count) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run adds what has come. When nothing more can come it sends its most frequent words.
func (c *Count) Run(ctx context.Context, run *worker.Run) error {
	w := counting{Count: c, run: run, index: make(map[int]*part), fresh: make(map[int]*tally)}
	if _, err := run.State().Get(indexAt, &w.index); err != nil {
		return err
	}
	for page, err := range c.Words.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = page.check()
		}
		if err == nil {
			err = w.add(page)
		}
		if err != nil {
			return err
		}
	}
	if err := w.save(); err != nil {
		return err
	}
	if !c.Words.Done() {
		return nil
	}
	return w.finish()
}

// counting is the work of one run of Count.
type counting struct {
	*Count
	run     *worker.Run
	index   map[int]*part
	fresh   map[int]*tally // words read and not yet in a page
	weight  int            // of fresh
	written int            // since the last commit
}

func (w *counting) add(page Words) error {
	t := w.fresh[page.Part]
	if t == nil {
		t = newTally()
		w.fresh[page.Part] = t
	}
	before := t.weight
	t.addPage(page)
	w.weight += t.weight - before
	if w.weight < commitWeight {
		return nil
	}
	if err := w.save(); err != nil {
		return err
	}
	return w.checkpoint()
}

// finish sends the most frequent words, page by page. A run that repeats this after a
// commit in between, or after the end, leaves out the pages that were sent.
func (w *counting) finish() error {
	var distinct int64
	best := ranking{limit: w.Top}
	for number, p := range w.index {
		t, err := w.load(number, p)
		if err != nil {
			return err
		}
		distinct += int64(len(t.counts))
		for word, n := range t.all() {
			best.add(word, n)
		}
	}
	sender, err := newSender(w.run, w.written)
	if err != nil {
		return err
	}
	pages := packer{full: func(page Words) error {
		tops := Tops{Distinct: distinct, Words: page}
		distinct = 0 // only the first page has it
		return sender.send(page.size(), func() error { return w.Tops.Write(tops) })
	}}
	for _, e := range best.sorted() {
		if err := pages.add(e.Word, e.Count); err != nil {
			return err
		}
	}
	if err := pages.flush(); err != nil {
		return err
	}
	return sender.save()
}
