package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weirworks/weir/worker"
)

const (
	// commitWeight is how much a run writes before it commits.
	commitWeight = 4 << 20
	// A part is compacted when the pages added since the last time hold as much as the
	// compact ones, so every word is rewritten a few times at most, or when they are many.
	// A part larger than one commit is left as it is.
	compactFrom  = 64 << 10
	compactPages = 64
)

// part is what the state has of one part: the pages First to Next-1, of which the
// first Compact ones hold every word once.
type part struct {
	First   int `json:"first"`
	Compact int `json:"compact"`
	Next    int `json:"next"`
	Base    int `json:"base"` // size of the compact pages
	Log     int `json:"log"`  // size of the others
}

func (p *part) due() bool {
	logs := p.Next - p.First - p.Compact
	return logs > 1 && p.Base+p.Log <= commitWeight && (p.Log >= max(p.Base, compactFrom) || logs >= compactPages)
}

func (p *part) keys(number int) []string {
	keys := make([]string, 0, p.Next-p.First)
	for i := p.First; i < p.Next; i++ {
		keys = append(keys, pageKey(number, i))
	}
	return keys
}

func pageKey(part, page int) string { return fmt.Sprintf("part.%d.%d", part, page) }

// save writes the fresh words as new pages, and compacts the parts for which it is time.
func (w *counting) save() error {
	touched := slices.Sorted(maps.Keys(w.fresh))
	for _, number := range touched {
		p := w.index[number]
		if p == nil {
			p = new(part)
			w.index[number] = p
		}
		size, err := w.write(number, p, w.fresh[number])
		if err != nil {
			return err
		}
		p.Log += size
	}
	clear(w.fresh)
	w.weight = 0
	for _, number := range touched {
		if p := w.index[number]; p.due() {
			if err := w.compact(number, p); err != nil {
				return err
			}
		}
	}
	if len(touched) == 0 {
		return nil
	}
	return w.run.State().Set(indexAt, w.index)
}

// write adds the words of a tally as pages and returns their size.
func (w *counting) write(number int, p *part, t *tally) (size int, err error) {
	pages := packer{part: number, full: func(page Words) error {
		size += page.size()
		w.written += page.size()
		key := pageKey(number, p.Next)
		p.Next++
		return w.run.State().Set(key, page)
	}}
	for word, n := range t.all() {
		if err := pages.add(word, n); err != nil {
			return size, err
		}
	}
	return size, pages.flush()
}

// compact merges all pages of a part, in a commit that has room for them.
func (w *counting) compact(number int, p *part) error {
	if w.written+p.Base+p.Log > commitWeight {
		if err := w.checkpoint(); err != nil {
			return err
		}
	}
	t, err := w.load(number, p)
	if err != nil {
		return err
	}
	w.run.State().Unset(p.keys(number)...)
	first := p.Next
	p.Base, err = w.write(number, p, t)
	p.First, p.Compact, p.Log = first, p.Next-first, 0
	return err
}

// checkpoint commits what has been written.
func (w *counting) checkpoint() error {
	if err := w.run.State().Set(indexAt, w.index); err != nil {
		return err
	}
	if err := w.run.Checkpoint(); err != nil {
		return fmt.Errorf("committing counts: %w", err)
	}
	w.written = 0
	return nil
}

// load reads all words of a part.
func (w *counting) load(number int, p *part) (*tally, error) {
	t := newTally()
	err := loadPages(w.run.State(), p.keys(number), func(page Words) { t.addPage(page) })
	return t, err
}

// loadPages reads pages of words from a state, a commit's worth at a time.
func loadPages(state *worker.State, keys []string, each func(Words)) error {
	for some := range slices.Chunk(keys, commitWeight/pageBytes) {
		raws, err := state.GetMany(some)
		if err != nil {
			return err
		}
		for _, key := range some {
			var page Words
			if err := json.Unmarshal(raws[key], &page); err != nil {
				return fmt.Errorf("reading %s of the state: %w", key, err)
			}
			if err := page.check(); err != nil {
				return fmt.Errorf("reading %s of the state: %w", key, err)
			}
			each(page)
		}
	}
	return nil
}
