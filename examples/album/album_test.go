package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(redistest.Main(m))
}

// album runs the program.
func album(t *testing.T, url, tree string, paths ...string) (stdout string, err error) {
	var out bytes.Buffer
	err = run(t.Context(), url, tree, paths, &out)
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

// figure is a picture on the page of an album, or what is said of a file that is not there.
var figure = regexp.MustCompile(`<figure( class="broken")?>.*<figcaption>([^:<]+?)(?:: [^<]+)?</figcaption></figure>`)

// checkAlbum looks at everything that there is in an album of pictures.
func checkAlbum(t *testing.T, out string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"index.html"}
	var order, broken []string
	for _, m := range figure.FindAllStringSubmatch(string(page), -1) {
		file := html.UnescapeString(m[2])
		order = append(order, file)
		if m[1] != "" {
			broken = append(broken, file)
			continue
		}
		for _, width := range widths {
			name := fmt.Sprintf("%s-%d.jpg", file, width)
			want = append(want, name)
			checkThumb(t, filepath.Join(out, name), file, width)
			if link := (&url.URL{Path: name}).EscapedPath(); !strings.Contains(strings.ToLower(m[0]), `="`+strings.ToLower(strings.ReplaceAll(link, "&", "&amp;"))+`"`) {
				t.Errorf("the page does not show %s: %s", link, m[0])
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
	if strings.Contains(string(page), "<b>&.") || strings.Count(string(page), "<img ") != len(sizes) {
		t.Errorf("the page:\n%s", page)
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
	stdout, err := album(t, "", "album", folder, out)
	if err == nil || err.Error() != "3 of 12 pictures are not in the album" {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"9 pictures in " + out, `"a0 empty.png": cannot be read: image: unknown format` + "\n", `"z text.jpg": `, "│ make ", "✓ completed", "│ resize_640 "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	checkAlbum(t, out)

	before := contents(t, out)
	if stdout, _ := album(t, "", "album", folder, out); !strings.HasPrefix(stdout, "9 pictures in ") {
		t.Errorf("again: %s", stdout)
	}
	checkAlbum(t, out)
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
	if stdout, err := album(t, "", "album", folder, out); err != nil || !strings.HasPrefix(stdout, "0 pictures in "+filepath.Join(out, "index.html")+"\n") {
		t.Errorf("an empty album: %v, %s", err, stdout)
	}
	for i := range 24 {
		var b bytes.Buffer
		if err := png.Encode(&b, gradient(10+i, 10)); err != nil {
			t.Fatal(err)
		}
		write(t, folder, fmt.Sprintf("%02d.png", i), b.Bytes())
	}
	if stdout, err := album(t, "", "album", folder, out); err != nil || !strings.HasPrefix(stdout, "24 pictures in ") {
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
	out, redis := t.TempDir(), redistest.Start(t).URL()
	kills := 0
	for after := 100 * time.Millisecond; ; after += 100 * time.Millisecond {
		cmd := exec.Command(program, "-redis", redis, folder, out)
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
	checkAlbum(t, out)

	if _, err := album(t, redis, "album", folder, t.TempDir()); !errors.Is(err, job.ErrExists) {
		t.Errorf("another album: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", nil)
	for _, c := range []struct {
		says, redis string
		paths       []string
	}{
		{"give a FOLDER", "", nil},
		{"give a FOLDER", "", []string{dir}},
		{"no such file or directory; give the folder", "", []string{filepath.Join(dir, "gone"), dir}},
		{"not a directory; give the folder", "", []string{file, dir}},
		{"cannot go into the folder of its pictures", "", []string{dir, dir + "/"}},
		{"not a directory", "", []string{dir, filepath.Join(file, "out")}},
		{"unknown scheme", "http://localhost", []string{dir, t.TempDir()}},
	} {
		if stdout, err := album(t, c.redis, "album", c.paths...); err == nil || stdout != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q", c.says, err, stdout)
		}
	}
}

// A file is replaced as a whole or not at all.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"old", "new"} {
		if err := replaceFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
	if err := replaceFile(dir, []byte("new")); err == nil {
		t.Error("a folder is replaced")
	}
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if got := listing(t, folder); len(got) != 1 {
			t.Errorf("%s has %q", folder, got)
		}
	}
}
