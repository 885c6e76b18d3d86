package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // pictures may be of these kinds
	"image/jpeg"
	_ "image/png"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	maxPixels = 100_000_000 // of a picture: more would not fit into memory
	quality   = 85
)

// Thumb is a picture made smaller.
type Thumb struct {
	File   string `json:"file"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Asked  int    `json:"asked"` // the width asked for: the picture may be smaller
}

// Task is one thumbnail to make.
type Task struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Width  int    `json:"width"`
}

// Resize makes thumbnails.
type Resize struct {
	In    port.In[Task]
	Thumb port.Out[Thumb]
}

// JobType implements job.Typer.
func (*Resize) JobType() string { return "album/resize" }

// Run writes a file before it tells of it. A run that is repeated writes the same bytes
// again, and under another name first, so nobody sees half a picture.
func (r *Resize) Run(context.Context, *worker.Run) error {
	for task, err := range r.In.All() {
		if err != nil {
			return err
		}
		thumb, err := task.make()
		if err != nil {
			return err
		}
		if err := r.Thumb.Write(thumb); err != nil {
			return err
		}
	}
	return nil
}

func (t Task) make() (Thumb, error) {
	src, err := decode(t.Source)
	if err != nil {
		return Thumb{}, err
	}
	small := shrink(src, t.Width)
	err = replaceFile(t.Target, func(w io.Writer) error {
		return jpeg.Encode(w, small, &jpeg.Options{Quality: quality})
	})
	if err != nil {
		return Thumb{}, fmt.Errorf("writing %s: %w", t.Target, err)
	}
	size := small.Bounds().Size()
	return Thumb{filepath.Base(t.Target), size.X, size.Y, t.Width}, nil
}

// decode reads a picture.
func decode(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	config, _, err := image.DecodeConfig(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("it is no picture: %w", err)
	}
	if pixels := int64(config.Width) * int64(config.Height); pixels > maxPixels {
		return nil, fmt.Errorf("it has %d pixels; at most %d are allowed", pixels, maxPixels)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	src, _, err := image.Decode(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("it cannot be decoded: %w", err)
	}
	return src, nil
}

// shrink makes a picture so many pixels wide, on white. Each pixel is the mean of those
// that it covers. One that is not wider stays as large as it is.
func shrink(src image.Image, width int) *image.RGBA {
	b := src.Bounds()
	width = min(width, b.Dx())
	height := max(1, (b.Dy()*width+b.Dx()/2)/b.Dx())
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		y0, y1 := b.Min.Y+y*b.Dy()/height, b.Min.Y+(y+1)*b.Dy()/height
		for x := range width {
			x0, x1 := b.Min.X+x*b.Dx()/width, b.Min.X+(x+1)*b.Dx()/width
			dst.SetRGBA(x, y, mean(src, image.Rect(x0, y0, x1, max(y1, y0+1))))
		}
	}
	return dst
}

// mean is the mean color of a part of a picture, on white.
func mean(src image.Image, part image.Rectangle) color.RGBA {
	var r, g, b, a, n uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			pr, pg, pb, pa := src.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa), n+1
		}
	}
	white := 0xffff*n - a
	part8 := func(v uint64) uint8 { return uint8(min((v+white)/n, 0xffff) >> 8) } //nolint:gosec // at most 255
	return color.RGBA{part8(r), part8(g), part8(b), 0xff}
}

// replaceFile writes a file as a whole: whoever looks sees the old one or the new one.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".album-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Entry is a picture in the album, or why it is not there.
type Entry struct {
	Picture
	Thumbs []Thumb `json:"thumbs"`
	Error  string  `json:"error,omitempty"`
}

// Join makes an entry of what came of one picture: thumbnails, and letters of those jobs
// that could not make theirs.
type Join struct {
	Picture Picture
	Count   int
	Thumbs  port.In[Thumb]
	Failed  port.In[job.Letter]
	Entry   port.Out[Entry]
}

// JobType implements job.Typer.
func (*Join) JobType() string { return "album/join" }

// WorkerOptions implements worker.Configured.
func (*Join) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run leaves what has come in the ports until all has.
func (j *Join) Run(context.Context, *worker.Run) error {
	if j.Thumbs.Len()+j.Failed.Len() < j.Count {
		return worker.ErrSuspend
	}
	e := Entry{Picture: j.Picture}
	for l, err := range j.Failed.All() {
		if err != nil {
			return err
		}
		if e.Error == "" || l.Error < e.Error {
			e.Error = l.Error
		}
	}
	for t, err := range j.Thumbs.All() {
		if err != nil {
			return err
		}
		e.Thumbs = append(e.Thumbs, t)
	}
	slices.SortFunc(e.Thumbs, func(a, b Thumb) int { return cmp.Compare(a.Asked, b.Asked) })
	return j.Entry.Write(e)
}
