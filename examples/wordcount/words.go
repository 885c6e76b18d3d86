package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	parts     = 16   // that words are divided into: all counts of a word meet in one Count
	pageWords = 2000 // different words in a page
	maxWord   = 256  // bytes of a word that count
)

// Split counts the words of a batch, and sends the counts in parts, so that all counts of
// one word reach the same Count.
type Split struct {
	Batches port.In[[]Piece]
	Pages   port.Out[map[string]int64]
}

// Run counts one batch. While others wait the job runs again.
func (s *Split) Run(ctx context.Context, _ *worker.Run) error {
	batch, _, err := s.Batches.Read()
	var pages [parts]map[string]int64
	for i := range pages {
		pages[i] = map[string]int64{}
	}
	for _, piece := range batch {
		err = cmp.Or(err, ctx.Err(), piece.words(func(word string) error {
			i := job.Hash(word) % parts
			if pages[i][word]++; len(pages[i]) < pageWords {
				return nil
			}
			defer clear(pages[i])
			return s.Pages.WriteKey(strconv.Itoa(int(i)), pages[i])
		}))
	}
	for i, page := range pages {
		if len(page) > 0 && err == nil {
			err = s.Pages.WriteKey(strconv.Itoa(i), page)
		}
	}
	return err
}

// words calls each with each word that begins in the piece, in lower case.
func (p Piece) words(each func(word string) error) error {
	f, err := os.Open(p.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := max(0, p.From-utf8.UTFMax) // the rune before From tells whether a word begins there
	raw, err := io.ReadAll(io.NewSectionReader(f, start, p.To+maxWord-start))
	if err != nil {
		return err
	}
	for start > 0 && start < p.From && len(raw) > 0 && !utf8.RuneStart(raw[0]) {
		raw, start = raw[1:], start+1
	}
	text, began := string(raw)+" ", -1
	for i, r := range text {
		switch letter := unicode.IsLetter(r) || unicode.IsDigit(r); {
		case letter && began < 0:
			began = i
		case !letter && began >= 0:
			if at := start + int64(began); at >= p.From && at < p.To {
				if err := each(strings.ToLower(strings.ToValidUTF8(text[began:min(i, began+maxWord)], ""))); err != nil {
					return err
				}
			}
			began = -1
		}
	}
	return nil
}

// Count adds up the counts of the words of its parts. Each word is a key of its state, so a
// run reads and writes only the words that it gets.
type Count struct {
	Top   int
	Pages port.In[map[string]int64]
	Sum   port.Out[Result]
}

// WorkerOptions implements worker.Configured.
func (*Count) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run adds what has come, and ranks the words when nothing more can come.
func (c *Count) Run(_ context.Context, run *worker.Run) error {
	fresh := map[string]int64{}
	for page, err := range c.Pages.All() {
		if err != nil {
			return err
		}
		for word, n := range page {
			fresh[word] += n
		}
		if len(fresh) > 2*pageWords {
			break // a commit has room for 8,000 keys; while pages wait the job runs again
		}
	}
	known, err := run.State().GetMany(slices.Collect(maps.Keys(fresh)))
	if err != nil {
		return err
	}
	for word, n := range fresh {
		if err := run.State().Set(word, n+number(known[word])); err != nil {
			return err
		}
	}
	if !c.Pages.Done() {
		return nil
	}
	all, err := run.State().All()
	if err != nil {
		return err
	}
	sum := Result{Distinct: int64(len(all))}
	for word, raw := range all {
		sum.Words += number(raw)
		sum.Top = append(sum.Top, Entry{word, number(raw)})
	}
	sum.rank(c.Top)
	return c.Sum.Write(sum)
}

// number reads a count of the state; of a word that is not there it is zero.
func number(raw json.RawMessage) int64 {
	n, _ := strconv.ParseInt(string(raw), 10, 64)
	return n
}

// Entry is a word of a ranking.
type Entry struct {
	Word  string `json:"word"`
	Count int64  `json:"count"`
}

// Result is what was counted, by one job or by all.
type Result struct {
	Files    int64   `json:"files"`
	Skipped  int64   `json:"skipped"` // files that are no text
	Bytes    int64   `json:"bytes"`
	Words    int64   `json:"words"`
	Distinct int64   `json:"distinct"`
	Top      []Entry `json:"top"`
}

// rank keeps the most frequent words, and of equals the ones first in byte order.
func (r *Result) rank(top int) {
	slices.SortFunc(r.Top, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
	})
	r.Top = r.Top[:min(top, len(r.Top))]
}

// Merge adds up what List and each Count found.
type Merge struct {
	Top    int
	Sums   port.In[Result]
	Result port.Out[Result]
}

// WorkerOptions implements worker.Configured.
func (*Merge) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run adds what has come, and writes the result when nothing more can come.
func (m *Merge) Run(_ context.Context, run *worker.Run) error {
	all := Result{Top: []Entry{}}
	if _, err := run.State().Get("all", &all); err != nil {
		return err
	}
	for sum, err := range m.Sums.All() {
		if err != nil {
			return err
		}
		all.Files, all.Skipped, all.Bytes = all.Files+sum.Files, all.Skipped+sum.Skipped, all.Bytes+sum.Bytes
		all.Words, all.Distinct, all.Top = all.Words+sum.Words, all.Distinct+sum.Distinct, append(all.Top, sum.Top...)
	}
	all.rank(m.Top)
	if !m.Sums.Done() {
		return run.State().Set("all", all)
	}
	return m.Result.Write(all)
}
