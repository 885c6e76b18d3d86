package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	logging.Disable() // as main does
	os.Exit(redistest.Main(m))
}

// album runs the program.
func album(ctx context.Context, o options, widths string, paths ...string) (stdout string, err error) {
	var out bytes.Buffer
	if err = o.check(widths, paths); err == nil {
		err = o.run(ctx, &out)
	}
	return out.String(), err
}

// gradient is red from left to right, green from top to bottom.
func gradient(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetNRGBA(x, y, color.NRGBA{uint8(255 * x / width), uint8(255 * y / height), 80, 255})
		}
	}
	return img
}

// sizes are those of the pictures that pictures makes.
var sizes = map[string]image.Point{
	"a wide.png":    {1200, 300},
	"b tall.JPG":    {200, 900},
	"c small.gif":   {20, 10},
	"d thin.png":    {1000, 1},
	"e clear.png":   {300, 300},
	"f <b>&.jpeg":   {641, 479},
	"g square.png":  {640, 640},
	"h ümlaut.png":  {333, 777},
	"i another.png": {800, 600},
}

// pictures fills a folder with pictures, three that are none, and other files.
func pictures(t testing.TB) (folder string, names []string) {
	t.Helper()
	folder = t.TempDir()
	for name, size := range sizes {
		names = append(names, name)
		var img image.Image = gradient(size.X, size.Y)
		if name == "e clear.png" {
			img = image.NewNRGBA(image.Rect(0, 0, size.X, size.Y)) // nothing but transparent
		}
		var b bytes.Buffer
		var err error
		switch strings.ToLower(filepath.Ext(name)) {
		case ".png":
			err = png.Encode(&b, img)
		case ".gif":
			err = gif.Encode(&b, img, nil)
		default:
			err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 95})
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, b.Bytes())
		if name == "i another.png" {
			write(t, folder, "b2 half.png", b.Bytes()[:b.Len()/2])
		}
	}
	write(t, folder, "a0 empty.png", nil)
	write(t, folder, "z text.jpg", []byte("no picture"))
	write(t, folder, "notes.txt", []byte("no picture either"))
	if err := os.Mkdir(filepath.Join(folder, "folder.png"), 0o755); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return folder, names
}

func write(t testing.TB, folder, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkAlbum looks at everything that there is in an album of pictures.
func checkAlbum(t *testing.T, out string, widths ...int) {
	t.Helper()
	var entries []Entry
	data, err := os.ReadFile(filepath.Join(out, dataName))
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{dataName, pageName}
	var order, broken []string
	for n, e := range entries {
		if e.Number != n+1 {
			t.Errorf("picture %d is at %d", e.Number, n+1)
		}
		order = append(order, e.File)
		if e.Error != "" || len(e.Thumbs) != len(widths) {
			broken = append(broken, e.File)
			continue
		}
		for i, width := range widths {
			name := fmt.Sprintf("%s-%d.jpg", e.File, width)
			want = append(want, name)
			checkThumb(t, filepath.Join(out, name), e.File, width)
			if e.Thumbs[i].File != name {
				t.Errorf("thumb %d of %s is %+v", i, e.File, e.Thumbs[i])
			}
		}
	}
	if !slices.IsSorted(order) || len(order) != len(sizes)+3 {
		t.Errorf("the album has %q", order)
	}
	if !slices.Equal(broken, []string{"a0 empty.png", "b2 half.png", "z text.jpg"}) {
		t.Errorf("broken are %q", broken)
	}
	slices.Sort(want)
	if got := listing(t, out); !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
	html, err := os.ReadFile(filepath.Join(out, pageName))
	if err != nil || strings.Contains(string(html), "<b>&.") || strings.Count(string(html), "<img ") != len(sizes) {
		t.Errorf("the page: %v\n%s", err, html)
	}
}

func listing(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	slices.Sort(names)
	return names
}

// checkThumb compares a thumbnail with what the picture was made of.
func checkThumb(t *testing.T, path, file string, width int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	img, err := jpeg.Decode(f)
	if err != nil {
		t.Error(err)
		return
	}
	size := sizes[file]
	w := min(width, size.X)
	h := max(1, int(math.Round(float64(size.Y)*float64(w)/float64(size.X))))
	if img.Bounds().Size() != (image.Point{w, h}) {
		t.Errorf("%s is %v, want %d x %d", path, img.Bounds().Size(), w, h)
		return
	}
	if strings.HasSuffix(file, ".gif") {
		return // its colors are few
	}
	for _, p := range []image.Point{{0, 0}, {w - 1, 0}, {w / 2, h / 2}, {w - 1, h - 1}} {
		wantR, wantG := 255*(float64(p.X)+.5)/float64(w), 255*(float64(p.Y)+.5)/float64(h)
		if size.Y == 1 {
			wantG = 0
		}
		if file == "e clear.png" {
			wantR, wantG = 255, 255
		}
		r, g, _, _ := img.At(p.X, p.Y).RGBA()
		if math.Abs(float64(r>>8)-wantR) > 12 || math.Abs(float64(g>>8)-wantG) > 12 {
			t.Errorf("%s at %v is %d,%d, want %.0f,%.0f", path, p, r>>8, g>>8, wantR, wantG)
		}
	}
}

func TestAlbum(t *testing.T) {
	t.Parallel()
	folder, _ := pictures(t)
	out := filepath.Join(t.TempDir(), "new", "album")
	stdout, err := album(t.Context(), options{}, "320,60,320", folder, out)
	if err == nil || err.Error() != "3 of 12 pictures are not in the album" {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"9 pictures in " + out, `"a0 empty.png": it is no picture: image: unknown format` + "\n", `"z text.jpg": `, "│ make ", "✓ completed"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	checkAlbum(t, out, 60, 320)

	before := contents(t, out)
	if stdout, _ := album(t.Context(), options{}, "60,320", folder, out); !strings.HasPrefix(stdout, "9 pictures in ") {
		t.Errorf("again: %s", stdout)
	}
	checkAlbum(t, out, 60, 320)
	after := contents(t, out)
	for name, data := range before {
		if !bytes.Equal(after[name], data) {
			t.Errorf("%s differs the second time", name)
		}
	}
}

func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range listing(t, folder) {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = data
	}
	return all
}

func TestNothingBroken(t *testing.T) {
	t.Parallel()
	folder, out := t.TempDir(), t.TempDir()
	if stdout, err := album(t.Context(), options{}, "160", folder, out); err != nil || !strings.HasPrefix(stdout, "0 pictures in "+filepath.Join(out, pageName)+"\n") {
		t.Errorf("an empty album: %v, %s", err, stdout)
	}
	for i := range 3 * atOnce {
		var b bytes.Buffer
		if err := png.Encode(&b, gradient(10+i, 10)); err != nil {
			t.Fatal(err)
		}
		write(t, folder, fmt.Sprintf("%02d.png", i), b.Bytes())
	}
	if stdout, err := album(t.Context(), options{}, "160", folder, out); err != nil || !strings.HasPrefix(stdout, "24 pictures in ") {
		t.Errorf("%v, %s", err, stdout)
	}
}

// An album whose program is killed again and again is the same in the end, and has
// nothing else in its folder but what a dead program was just writing.
func TestKilled(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "album")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	folder, _ := pictures(t)
	out, url := t.TempDir(), redistest.Start(t).URL()
	kills := 0
	for after := 100 * time.Millisecond; ; after += 100 * time.Millisecond {
		cmd := exec.Command(program, "-redis", url, "-tree", "album", folder, out)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		err := cmd.Wait()
		timer.Stop()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("got %v, want the exit code for broken pictures", err)
		}
		if exit.ExitCode() == 1 && strings.Contains(stderr.String(), "3 of 12 pictures") {
			break
		}
		if exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the program ended by itself: %v: %s", err, stderr.String())
		}
		kills++
	}
	t.Logf("%d kills", kills)
	if kills == 0 {
		t.Error("no kill met a living program: the test shows nothing")
	}
	for _, name := range listing(t, out) {
		if strings.HasPrefix(name, ".album-") {
			_ = os.Remove(filepath.Join(out, name))
		}
	}
	checkAlbum(t, out, 160, 640)

	other := t.TempDir()
	if _, err := album(t.Context(), options{redis: url, tree: "album"}, "160", folder, other); !errors.Is(err, job.ErrExists) {
		t.Errorf("another album: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", nil)
	for _, c := range []struct {
		says, widths string
		o            options
		paths        []string
	}{
		{"give a FOLDER", "160", options{}, nil},
		{"give a FOLDER", "160", options{}, []string{dir}},
		{"use numbers from 1 to 10000", "0", options{}, []string{dir, "out"}},
		{"use numbers from 1 to 10000", "many", options{}, []string{dir, "out"}},
		{"give at most 8", "1,2,3,4,5,6,7,8,9", options{}, []string{dir, "out"}},
		{"-tree needs a Redis", "160", options{tree: "x"}, []string{dir, "out"}},
		{"no such file or directory; give the folder", "160", options{}, []string{filepath.Join(dir, "gone"), dir}},
		{"not a directory; give the folder", "160", options{}, []string{file, dir}},
		{"cannot go into the folder of its pictures", "160", options{}, []string{dir, dir}},
		{"not a directory", "160", options{}, []string{dir, filepath.Join(file, "out")}},
		{"unknown scheme", "160", options{redis: "http://localhost"}, []string{dir, t.TempDir()}},
	} {
		if stdout, err := album(t.Context(), c.o, c.widths, c.paths...); err == nil || stdout != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q", c.says, err, stdout)
		}
	}
}

// A file is replaced as a whole or not at all.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(path), "file", []byte("old"))
	bad := errors.New("bad")
	if err := replaceFile(path, func(w io.Writer) error { fmt.Fprint(w, "new"); return bad }); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "old" || len(listing(t, filepath.Dir(path))) != 1 {
		t.Errorf("after a failure: %q, %v, %q", data, err, listing(t, filepath.Dir(path)))
	}
}
