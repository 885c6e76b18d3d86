package main

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const sumAt = "sum"

// Merge adds up the statistics of all Splits and ranks the words of all Counts. At the
// end it writes the result: as many messages as a long ranking needs, most often one.
type Merge struct {
	Top    int
	Stats  port.In[Stats]
	Tops   port.In[Tops]
	Result port.Out[Result]
}

// JobType implements job.Typer.
func (*Merge) JobType() string { return "wordcount/merge" }

// Result is what was counted. Of a result in several messages each has the next part of
// Top, and all have the same sums.
type Result struct {
	Files    int64   `json:"files"`   // counted
	Skipped  int64   `json:"skipped"` // not valid UTF-8
	Bytes    int64   `json:"bytes"`   // of the counted files
	Words    int64   `json:"words"`
	Distinct int64   `json:"distinct"`
	Top      []Entry `json:"top"`
	More     bool    `json:"more,omitempty"` // another message follows
}

// sum is Merge's state besides the pages of words.
type sum struct {
	Stats
	Distinct int64 `json:"distinct"`
	Pages    int   `json:"pages"`
}

// WorkerOptions implements worker.Configured.
func (*Merge) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run takes in what has come, and writes the result when nothing more can come.
func (m *Merge) Run(ctx context.Context, run *worker.Run) error {
	w := merging{Merge: m, run: run}
	if _, err := run.State().Get(sumAt, &w.sum); err != nil {
		return err
	}
	for stats, err := range m.Stats.All() {
		if err != nil {
			return err
		}
		w.sum.add(stats)
	}
	for tops, err := range m.Tops.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.keep(tops)
		}
		if err != nil {
			return err
		}
	}
	if err := run.State().Set(sumAt, w.sum); err != nil {
		return err
	}
	if !m.Stats.Done() || !m.Tops.Done() {
		return nil
	}
	return w.finish()
}

// merging is the work of one run of Merge.
type merging struct {
	*Merge
	run     *worker.Run
	sum     sum
	written int // since the last commit
}

func topKey(page int) string { return fmt.Sprintf("top.%d", page) }

// keep puts a page of words into the state.
func (w *merging) keep(tops Tops) error {
	if err := tops.Words.check(); err != nil {
		return err
	}
	if err := w.run.State().Set(topKey(w.sum.Pages), tops.Words); err != nil {
		return err
	}
	w.sum.Pages++
	w.sum.Distinct += tops.Distinct
	if w.written += tops.Words.size(); w.written < commitWeight {
		return nil
	}
	w.written = 0
	if err := w.run.State().Set(sumAt, w.sum); err != nil {
		return err
	}
	if err := w.run.Checkpoint(); err != nil {
		return fmt.Errorf("committing words: %w", err)
	}
	return nil
}

// finish ranks all words and writes the result.
func (w *merging) finish() error {
	keys := make([]string, w.sum.Pages)
	for i := range keys {
		keys[i] = topKey(i)
	}
	best := ranking{limit: w.Top}
	err := loadPages(w.run.State(), keys, func(page Words) {
		for word, n := range page.all() {
			best.add(word, n)
		}
	})
	if err != nil {
		return err
	}
	sender, err := newSender(w.run, w.written)
	if err != nil {
		return err
	}
	for top, more := best.sorted(), true; more; {
		n := pageOf(top)
		page := w.result(top[:n])
		top = top[n:]
		more = len(top) > 0
		page.More = more
		if err := sender.send(entriesSize(page.Top), func() error { return w.Result.Write(page) }); err != nil {
			return err
		}
	}
	return sender.save()
}

func (w *merging) result(top []Entry) Result {
	s := w.sum
	return Result{
		Files: s.Files, Skipped: s.Skipped, Bytes: s.Bytes, Words: s.Words,
		Distinct: s.Distinct, Top: append([]Entry{}, top...),
	}
}

// perEntry is what an entry takes up in a message besides its word, roughly.
const perEntry = 32

func entriesSize(entries []Entry) int {
	size := 0
	for _, e := range entries {
		size += len(e.Word) + perEntry
	}
	return size
}

// pageOf returns how many of the entries go into one message.
func pageOf(entries []Entry) int {
	size := 0
	for i, e := range entries {
		if size >= pageBytes || i >= pageWords {
			return i
		}
		size += len(e.Word) + perEntry
	}
	return len(entries)
}
