// Command wordcount counts the words of files and directories by a graph of durable jobs:
//
//	list -> split (4 jobs) -> count (4 jobs) -> merge
//
// With -redis a count that was killed goes on where it stopped when it is started again, and every word is counted once.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const (
	instances   = 4       // jobs that split, and that count
	pieceBytes  = 2 << 20 // of files that a run reads: bounds the work that a killed process repeats
	commitEvery = 5000    // pieces that List writes in a commit, about
	parts       = 16      // that words are divided into: all counts of a word meet in one Count
	pageWords   = 2000    // different words in a page
	maxWord     = 256     // bytes of a word that count
)

const usage = `Count the words of files, and of all regular files in directories: wordcount [flags] PATH...
A word is a longest run of letters and digits, in lower case; of a very long one the first 256 bytes count.
Files that do not begin like text are skipped. One that is named twice is counted twice.`

// options are what the command line says.
type options struct {
	redis, tree string
	top         int
	json        bool
	paths       []string
}

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	flag.StringVar(&o.tree, "tree", "wordcount", "`NAME` of the count: the same command continues it, or prints its result again")
	flag.IntVar(&o.top, "top", 10, "list the `N` most frequent words, 1 to 1000")
	flag.BoolVar(&o.json, "json", false, "print the result as JSON")
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()
	o.paths = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := o.check()
	if err == nil {
		err = o.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

// check refuses what cannot work, and makes the paths absolute.
func (o *options) check() error {
	switch {
	case o.top < 1 || o.top > 1000:
		return fmt.Errorf("-top %d: use 1 to 1000", o.top)
	case len(o.paths) == 0:
		return errors.New("no PATH to count; name files and directories, as in wordcount ~/books")
	}
	for i, path := range o.paths {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("%w; check the path, and give flags before paths", err)
		}
		o.paths[i], _ = filepath.Abs(path)
	}
	return nil
}

// newGraph wires the workers.
func newGraph(paths []string, top int) *graph.Graph {
	g := graph.New("wordcount")
	list := graph.Add(g, "list", &List{Paths: paths})
	split := graph.Add(g, "split", &Split{}, graph.Instances(instances))
	count := graph.Add(g, "count", &Count{Top: top}, graph.Instances(instances))
	merge := graph.Add(g, "merge", &Merge{Top: top})
	graph.Connect(list.Files, split.Files)
	graph.Connect(split.Pages, count.Pages)
	graph.Connect(list.Found, merge.Sums)
	graph.Connect(count.Sum, merge.Sums)
	graph.Export(g, "result", merge.Result)
	return g
}

// run starts the count, or takes up the one of that name where it stopped, and reports it.
func (o *options) run(ctx context.Context, w io.Writer) error {
	began := time.Now()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := client.New(store).Start(ctx, newGraph(o.paths, o.top), job.Alias(o.tree))
	if err != nil {
		return err
	}
	workers := []worker.Worker{&List{}, &Split{}, &Count{}, &Merge{}}
	engine, err := worker.New(worker.Config{Store: store, Workers: workers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := engine.RunWhile(ctx, func(ctx context.Context) error {
		_, retrying := h.RetryFailed(ctx) // if it failed earlier
		_, waiting := h.Wait(ctx)
		return cmp.Or(retrying, waiting)
	}); err != nil {
		return err
	}
	return o.report(ctx, h, w, time.Since(began))
}

// report writes the result, which stays where it is for the next time.
func (o *options) report(ctx context.Context, h *client.Handle, w io.Writer, took time.Duration) error {
	var r Result
	raws, err := h.Peek(ctx, "result", 1)
	if err != nil || len(raws) == 0 || json.Unmarshal(raws[0], &r) != nil {
		return cmp.Or(err, errors.New("there is no result: it was terminated, or somebody took it; use another -tree"))
	}
	if o.json {
		_, err := fmt.Fprintf(w, "%s\n", raws[0])
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d words, %d different, in %d files (%.1f MB); %d files are no text — %s\n\n",
		r.Words, r.Distinct, r.Files, float64(r.Bytes)/1e6, r.Skipped, took.Round(100*time.Millisecond))
	for _, e := range r.Top {
		fmt.Fprintf(table, "%s\t%d\t%s\n", e.Word, e.Count, strings.Repeat("█", int(50*e.Count/r.Top[0].Count)))
	}
	fmt.Fprintln(table)
	tree, err := h.Tree(ctx)
	return cmp.Or(err, table.Flush(), draw.Terminal(w, draw.Jobs(tree), draw.TerminalOptions{}))
}

// Piece is a part of a file.
type Piece struct {
	Path     string
	From, To int64
}

// List finds the files to count, and cuts large ones into pieces.
type List struct {
	Paths []string // absolute, each a file or a directory
	Files port.Out[Piece]
	Found port.Out[Result]
}

// Run walks from where the last commit was on, so that nothing is listed twice.
func (l *List) Run(ctx context.Context, run *worker.Run) error {
	var at struct { // all files of the arguments before Arg are listed, and in that one up to and with Path
		Arg   int
		Path  string
		Found Result
	}
	if _, err := run.State().Get("listing", &at); err != nil {
		return err
	}
	written := 0
	walk := func(path string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || !d.Type().IsRegular() || !after(path, at.Path) {
			return err
		}
		info, err := d.Info()
		head, reading := part(path, 0, 512)
		if err := cmp.Or(err, reading); err != nil {
			return err
		}
		at.Path = path
		if !strings.HasPrefix(http.DetectContentType(head), "text/") || !utf8.ValidString(path) { // no message has such a name
			at.Found.Skipped++
			return nil
		}
		at.Found.Files, at.Found.Bytes = at.Found.Files+1, at.Found.Bytes+info.Size()
		for from := int64(0); from < info.Size(); from += pieceBytes {
			err = cmp.Or(err, l.Files.Write(Piece{path, from, min(from+pieceBytes, info.Size())}))
			written++
		}
		if err != nil || written < commitEvery {
			return err
		}
		written = 0
		return cmp.Or(run.State().Set("listing", at), run.Checkpoint())
	}
	for ; at.Arg < len(l.Paths); at.Arg, at.Path = at.Arg+1, "" {
		if err := filepath.WalkDir(l.Paths[at.Arg], walk); err != nil {
			return err
		}
	}
	return l.Found.Write(at.Found)
}

// after tells whether a walk comes to one path later than to another.
func after(path, other string) bool {
	return slices.Compare(strings.Split(path, string(filepath.Separator)), strings.Split(other, string(filepath.Separator))) > 0
}

// part reads up to n bytes of a file.
func part(path string, from, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, from, n))
}

// Split counts the words of pieces, and sends the counts in parts, so that all counts of one word reach the same Count.
type Split struct {
	Files port.In[Piece]
	Pages port.Out[map[string]int64]
}

// Run counts some pieces. While others wait the job runs again.
func (s *Split) Run(ctx context.Context, _ *worker.Run) error {
	var pages [parts]map[string]int64
	for i := range pages {
		pages[i] = map[string]int64{}
	}
	send := func(i int) error {
		defer clear(pages[i])
		return s.Pages.WriteKey(strconv.Itoa(i), pages[i])
	}
	read := int64(0)
	for piece, err := range s.Files.All() {
		words, reading := piece.words()
		err = cmp.Or(err, ctx.Err(), reading)
		for _, word := range words {
			i := int(job.Hash(word) % parts)
			if pages[i][word]++; len(pages[i]) == pageWords {
				err = cmp.Or(err, send(i))
			}
		}
		if err != nil {
			return err
		}
		if read += piece.To - piece.From; read >= pieceBytes {
			break
		}
	}
	var err error
	for i, page := range pages {
		if len(page) > 0 {
			err = cmp.Or(err, send(i))
		}
	}
	return err
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// words returns the words that begin in the piece, in lower case.
func (p Piece) words() (words []string, err error) {
	start := max(0, p.From-utf8.UTFMax) // the rune before From tells whether a word begins there
	text, err := part(p.Path, start, p.To+maxWord-start)
	text = text[behind(text, p.From-start):behind(text, p.To-start)]
	for _, word := range bytes.FieldsFunc(text, func(r rune) bool { return !isWord(r) }) {
		words = append(words, strings.ToLower(strings.ToValidUTF8(string(word[:min(len(word), maxWord)]), "")))
	}
	return words, err
}

// behind is a place in a text, or the end of the word that goes over it.
func behind(text []byte, place int64) int {
	at := min(int(place), len(text))
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	if before, _ := utf8.DecodeLastRune(text[:at]); isWord(before) {
		at = len(text) - len(bytes.TrimLeftFunc(text[at:], isWord))
	}
	return at
}

// Count adds up the counts of the words of its parts. Each word is a key of its state, so a run reads and writes only the
// words that it gets.
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
	for word, n := range fresh {
		err = cmp.Or(err, run.State().Set(word, n+number(known[word])))
	}
	if err != nil || !c.Pages.Done() {
		return err
	}
	all, err := run.State().All()
	sum := Result{Distinct: int64(len(all))}
	for word, raw := range all {
		sum.Words += number(raw)
		sum.Top = append(sum.Top, Entry{word, number(raw)})
	}
	sum.rank(c.Top)
	return cmp.Or(err, c.Sum.Write(sum))
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
	slices.SortFunc(r.Top, func(a, b Entry) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word)) })
	r.Top = r.Top[:min(top, len(r.Top))]
}

// Merge adds up what List and each Count found.
type Merge struct {
	Top    int
	Sums   port.In[Result]
	Result port.Out[Result]
}

// Run leaves what has come in the port until all has.
func (m *Merge) Run(context.Context, *worker.Run) error {
	if m.Sums.Len() < 1+instances {
		return worker.ErrSuspend
	}
	all := Result{Top: []Entry{}}
	for sum, err := range m.Sums.All() {
		if err != nil {
			return err
		}
		all.Files, all.Skipped, all.Bytes = all.Files+sum.Files, all.Skipped+sum.Skipped, all.Bytes+sum.Bytes
		all.Words, all.Distinct, all.Top = all.Words+sum.Words, all.Distinct+sum.Distinct, append(all.Top, sum.Top...)
	}
	all.rank(m.Top)
	return m.Result.Write(all)
}
