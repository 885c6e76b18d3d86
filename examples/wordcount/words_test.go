package main

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Words that go through tallies and pages are what they were.
func TestPagesKeepCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-cä]{1,3}`)).Draw(t, "words")
		want := map[string]int64{}
		first, second := newTally(), newTally()
		for _, w := range words {
			want[w]++
			first.add([]byte(w))
		}
		pages := packer{part: 5, full: func(p Words) error {
			if err := p.check(); err != nil {
				return err
			}
			second.addPage(p)
			return nil
		}}
		for word, n := range first.all() {
			if err := pages.add(word, n); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "cut") {
				if err := pages.flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := pages.flush(); err != nil {
			t.Fatal(err)
		}
		if got := maps.Collect(second.all()); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if first.weight != second.weight {
			t.Errorf("weights differ: %d and %d", first.weight, second.weight)
		}
	})
}

func TestPageSizes(t *testing.T) {
	t.Parallel()
	var sizes []int
	pages := packer{full: func(p Words) error { sizes = append(sizes, len(p.Count)); return p.check() }}
	for range 2*pageWords + 5 {
		if err := pages.add("word", 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := pages.add(string(make([]byte, pageBytes)), 1); err != nil {
		t.Fatal(err)
	}
	if err := pages.flush(); err != nil {
		t.Fatal(err)
	}
	if want := []int{pageWords, pageWords, 6}; !slices.Equal(sizes, want) {
		t.Errorf("pages of %v words, want %v", sizes, want)
	}
}

func TestDamagedPages(t *testing.T) {
	t.Parallel()
	for _, p := range []Words{
		{Text: "a b", Count: []int64{1}},
		{Text: "", Count: []int64{1}},
		{Text: "a", Part: parts, Count: []int64{1}},
		{Text: "a", Part: -1, Count: []int64{1}},
	} {
		if p.check() == nil {
			t.Errorf("%+v passes", p)
		}
	}
}

func TestRanking(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), rapid.Int64Range(1, 9), 0, 3000).Draw(t, "counts")
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		var want []Entry
		best := ranking{limit: limit}
		for word, n := range counts {
			want = append(want, Entry{word, n})
			best.add(word, n)
			if rapid.IntRange(0, 500).Draw(t, "sort") == 0 {
				best.sorted()
			}
		}
		slices.SortFunc(want, byRank)
		if got := best.sorted(); !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
