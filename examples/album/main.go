// Command album makes thumbnails of the pictures of a folder, and a page of them. The graph of durable jobs grows with its
// work: make starts a graph for each picture, whose jobs resize in parallel and are joined.
//
//	list -> make -> index
//	         └─ for each picture: resize_160, resize_640 -> join
//
// A picture that cannot be read is told of at the end, and stops no other. With -redis, an album that was killed goes on
// where it stopped when it is started again.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"image"
	"image/color"
	_ "image/gif" // pictures may be of these kinds
	"image/jpeg"
	_ "image/png"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// widths are those of the thumbnails, in pixels.
var widths = []int{160, 640}

//go:embed page.html
var pages embed.FS
var page = template.Must(template.ParseFS(pages, "page.html"))

func main() {
	url := flag.String("redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	tree := flag.String("tree", "album", "`NAME` of the album: the same command continues it, or prints its result again")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Make thumbnails of the GIF, JPEG and PNG files of a folder: album [flags] FOLDER OUT")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *url, *tree, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "album:", err)
		os.Exit(1)
	}
}

// run makes the album, or takes up the one of that name where it stopped, and says what came of it.
func run(ctx context.Context, url, tree string, args []string, w io.Writer) error {
	if len(args) != 2 {
		return errors.New("give a FOLDER of pictures and one for the album, as in album ~/pictures /tmp/album")
	}
	folder, _ := filepath.Abs(args[0])
	out, _ := filepath.Abs(args[1])
	if folder == out {
		return errors.New("the album cannot go into the folder of its pictures; give another OUT")
	}
	if _, err := os.ReadDir(folder); err != nil {
		return fmt.Errorf("%w; give the folder of the pictures", err)
	}
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	each := component.EachOf("album/make", pictureGraph())
	h, err := client.New(store).Start(ctx, albumGraph(folder, out, each), job.Alias(tree))
	if err != nil {
		return err
	}
	workers := []worker.Worker{&List{}, each, &component.Emit{}, &Resize{}, &component.Collect{}}
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
	return report(ctx, h, folder, out, w)
}

// albumGraph wires the jobs of an album. Messages of components are any JSON.
func albumGraph(folder, out string, each *component.Each) *graph.Graph {
	g := graph.New("album")
	list := graph.Add(g, "list", &List{Folder: folder, Out: out})
	graph.Add(g, "make", each)
	index := graph.Add(g, "index", &component.Collect{})
	graph.ToJSON(list.Pictures, each.In)
	graph.Connect(each.Out, index.In)
	graph.Export(g, "album", index.Out)
	return g
}

// pictureGraph wires the jobs of one picture. Its end is that of all of them.
func pictureGraph() *graph.Graph {
	g := graph.New("picture")
	picture := graph.Input[Picture](g, "in")
	join := graph.Add(g, "join", &component.Collect{})
	for _, width := range widths {
		resize := graph.Add(g, fmt.Sprintf("resize_%d", width), &Resize{Width: width})
		graph.Connect(picture, resize.Picture)
		graph.ToJSON(resize.Result, join.In)
	}
	graph.Export(g, "out", join.Out)
	return g
}

// report writes the page of the album, says what came of it, and draws the jobs that made it.
func report(ctx context.Context, h *client.Handle, folder, out string, w io.Writer) error {
	var pictures [][]Result // for each picture, those of its thumbnails
	raws, err := h.Peek(ctx, "album", 1)
	if err != nil || len(raws) == 0 || json.Unmarshal(raws[0], &pictures) != nil {
		return cmp.Or(err, errors.New("there is no result: it was terminated, or somebody took it; use another -tree"))
	}
	html, name := new(bytes.Buffer), filepath.Join(out, "index.html")
	if err := page.Execute(html, map[string]any{"Title": filepath.Base(folder), "Pictures": pictures}); err != nil {
		return err
	}
	if err := replaceFile(name, html.Bytes()); err != nil {
		return err
	}
	broken := slices.DeleteFunc(slices.Clone(pictures), func(p []Result) bool { return p[0].Error == "" })
	fmt.Fprintf(w, "%d pictures in %s\n", len(pictures)-len(broken), name)
	for _, p := range broken {
		fmt.Fprintf(w, "%q: %s\n", p[0].File, p[0].Error)
	}
	jobs, err := h.Tree(ctx)
	picture, planning := pictureGraph().Plan()
	o := draw.TerminalOptions{}
	err = cmp.Or(err, planning, draw.Terminal(w, draw.Jobs(jobs), o), draw.Terminal(w, draw.Plan(picture), o))
	if err != nil || len(broken) == 0 {
		return err
	}
	return fmt.Errorf("%d of %d pictures are not in the album", len(broken), len(pictures))
}

// Picture is a file to make thumbnails of, and where these go.
type Picture struct{ Folder, File, Out string }

// List finds the pictures of a folder, and makes the one for the album.
type List struct {
	Folder, Out string
	Pictures    port.Out[Picture]
}

// Run lists all in one run: the names of a folder fit into a commit.
func (l *List) Run(context.Context, *worker.Run) error {
	entries, err := os.ReadDir(l.Folder)
	err = cmp.Or(err, os.MkdirAll(l.Out, 0o755))
	for _, e := range entries {
		kind := strings.ToLower(filepath.Ext(e.Name()))
		if e.Type().IsRegular() && slices.Contains([]string{".gif", ".jpeg", ".jpg", ".png"}, kind) {
			err = cmp.Or(err, l.Pictures.Write(Picture{l.Folder, e.Name(), l.Out}))
		}
	}
	return err
}

// Result is what came of resizing a picture: an error if it cannot be read.
type Result struct{ File, Error string }

// Resize makes a thumbnail.
type Resize struct {
	Width   int
	Picture port.In[Picture]
	Result  port.Out[Result]
}

// Run writes a file before it tells of it. A run that is repeated writes the same bytes again. A picture that cannot be
// read is a result; an error is what another try may help, such as a full disk.
func (r *Resize) Run(context.Context, *worker.Run) error {
	p, ok, err := r.Picture.Read()
	if err != nil || !ok {
		return err
	}
	data, reading := os.ReadFile(filepath.Join(p.Folder, p.File))
	src, _, decoding := image.Decode(bytes.NewReader(data))
	if err := cmp.Or(reading, decoding); err != nil {
		return r.Result.Write(Result{p.File, fmt.Sprintf("cannot be read: %v", err)})
	}
	thumb := new(bytes.Buffer)
	if err := jpeg.Encode(thumb, shrink(src, r.Width), &jpeg.Options{Quality: 85}); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(p.Out, fmt.Sprintf("%s-%d.jpg", p.File, r.Width)), thumb.Bytes()); err != nil {
		return err
	}
	return r.Result.Write(Result{File: p.File})
}

// shrink makes a picture so many pixels wide, on white. Each pixel is the mean of those that it covers. One that is not
// wider stays as large as it is.
func shrink(src image.Image, width int) image.Image {
	b := src.Bounds()
	width = min(width, b.Dx())
	height := max(1, (b.Dy()*width+b.Dx()/2)/b.Dx())
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		x, y := i%width, i/width
		part := image.Rect(x*b.Dx()/width, y*b.Dy()/height, (x+1)*b.Dx()/width, (y+1)*b.Dy()/height).Add(b.Min)
		var red, green, blue, n uint64
		for y := part.Min.Y; y < part.Max.Y; y++ {
			for x := part.Min.X; x < part.Max.X; x++ {
				r, g, b, a := src.At(x, y).RGBA()
				white := 0xffff - a
				red, green, blue, n = red+uint64(r+white), green+uint64(g+white), blue+uint64(b+white), n+0x101
			}
		}
		dst.SetRGBA(x, y, color.RGBA{uint8(red / n), uint8(green / n), uint8(blue / n), 0xff})
	}
	return dst
}

// replaceFile writes a file as a whole: whoever looks sees the old one or the new one.
func replaceFile(path string, data []byte) error {
	temp := filepath.Join(filepath.Dir(path), ".album-"+rand.Text())
	defer func() { _ = os.Remove(temp) }() // if it could not be renamed
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
