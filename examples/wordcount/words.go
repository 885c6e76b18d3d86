package main

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// parts is the number of parts that words are divided into by their hash: all counts
// of a word meet in the job that has its part.
const parts = 64

// A page holds so many words, or so many bytes of them, whichever is reached first.
// Few large messages cost a store less than many small ones.
const (
	pageWords = 4000
	pageBytes = 128 << 10
)

// perWord is what a word in a page takes up besides its bytes, roughly: the space
// before it, its count and a comma.
const perWord = 8

func partOf(word string) int { return int(job.Hash(word) % parts) }

// Words is a page of different words and how often each occurs. The words are in one
// text, separated by spaces, which no word contains: that is small, and decoded at once.
type Words struct {
	Part  int     `json:"p"`
	Text  string  `json:"w"`
	Count []int64 `json:"n"`
}

// size is about the number of bytes that the page takes up as a message.
func (p Words) size() int { return len(p.Text) + perWord*len(p.Count) }

// all yields each word with its count.
func (p Words) all() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		i := 0
		for word := range strings.SplitSeq(p.Text, " ") {
			if i == len(p.Count) || !yield(word, p.Count[i]) {
				return
			}
			i++
		}
	}
}

// check refuses a page that lost something on its way.
func (p Words) check() error {
	words := 0
	if p.Text != "" {
		words = strings.Count(p.Text, " ") + 1
	}
	if words != len(p.Count) || p.Part < 0 || p.Part >= parts {
		return fmt.Errorf("damaged page of words: part %d, %d words, %d counts", p.Part, words, len(p.Count))
	}
	return nil
}

// packer makes pages of words. full gets each page as soon as it is complete.
type packer struct {
	part  int
	full  func(Words) error
	text  []byte
	count []int64
}

func (p *packer) add(word string, n int64) error {
	if len(p.count) > 0 {
		p.text = append(p.text, ' ')
	}
	p.text = append(p.text, word...)
	p.count = append(p.count, n)
	if len(p.count) >= pageWords || len(p.text) >= pageBytes {
		return p.flush()
	}
	return nil
}

// flush passes on the page that is not complete yet, if it holds anything.
func (p *packer) flush() error {
	if len(p.count) == 0 {
		return nil
	}
	page := Words{Part: p.part, Text: string(p.text), Count: slices.Clone(p.count)}
	p.text, p.count = p.text[:0], p.count[:0]
	return p.full(page)
}

// tally counts words in memory.
type tally struct {
	index  map[string]int // of a word in counts
	counts []int64
	weight int // about the size of the pages that hold it
}

func newTally() *tally { return &tally{index: make(map[string]int)} }

// add counts a word once. It allocates for new words only.
func (t *tally) add(word []byte) {
	if i, ok := t.index[string(word)]; ok {
		t.counts[i]++
		return
	}
	t.insert(string(word), 1)
}

// addPage counts the words of a page.
func (t *tally) addPage(p Words) {
	for word, n := range p.all() {
		if i, ok := t.index[word]; ok {
			t.counts[i] += n
		} else {
			t.insert(word, n)
		}
	}
}

func (t *tally) insert(word string, n int64) {
	t.index[word] = len(t.counts)
	t.counts = append(t.counts, n)
	t.weight += len(word) + perWord
}

func (t *tally) all() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for word, i := range t.index {
			if !yield(word, t.counts[i]) {
				return
			}
		}
	}
}

func (t *tally) reset() {
	clear(t.index)
	t.counts, t.weight = t.counts[:0], 0
}

// Entry is a word of a result.
type Entry struct {
	Word  string `json:"word"`
	Count int64  `json:"count"`
}

// byRank puts the more frequent word first, and of equals the one first in byte order.
func byRank(a, b Entry) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
}

// ranking keeps the most frequent of many words, in memory for a few times limit words.
type ranking struct {
	limit   int
	entries []Entry
	cut     bool // entries had more than limit words: the last of them is a threshold
	last    Entry
}

func (r *ranking) add(word string, n int64) {
	e := Entry{Word: word, Count: n}
	if r.cut && byRank(r.last, e) <= 0 {
		return
	}
	if r.entries = append(r.entries, e); len(r.entries)/2-1000 >= r.limit {
		r.sorted()
	}
}

// sorted returns the limit most frequent words, the most frequent first.
func (r *ranking) sorted() []Entry {
	slices.SortFunc(r.entries, byRank)
	if len(r.entries) > r.limit {
		clear(r.entries[r.limit:])
		r.entries = r.entries[:r.limit]
		r.cut, r.last = true, r.entries[r.limit-1]
	}
	return r.entries
}
