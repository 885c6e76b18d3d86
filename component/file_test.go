package component_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirworks/weir/client"
	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// filed is an engine whose jobs use files below a folder.
type filed struct {
	t    *testing.T
	e    *weirtest.Engine
	root string
}

func newFiled(t *testing.T) *filed {
	t.Helper()
	root := t.TempDir()
	return &filed{t, weirtest.New(t, All(Policy{Root: root})...), root}
}

func (f *filed) put(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.root, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *filed) text(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.root, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// run runs a job until it sleeps or ends, and returns what it wrote to out, or its error.
func (f *filed) run(c worker.Worker) ([]string, string) {
	f.t.Helper()
	h := f.e.StartWorker(c)
	f.e.RunUntilIdle()
	return outputs(f.t, h, outPorts(f.e, h)...)["out"], f.failure(h)
}

func (f *filed) failure(h *client.Handle) string {
	if fs := f.e.Failures(h); len(fs) > 0 {
		return fs[0].Error
	}
	if s := f.e.Status(h); s != statemachine.Completed && s != statemachine.Suspended {
		f.t.Fatalf("the job is %s", s)
	}
	return ""
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20+1)
	for _, c := range []struct {
		name, file, text string
		read             ReadFile
		want             string
		fail             string
	}{
		{name: "lines", file: "a", text: "one\ntwo\r\n\nlast", want: `"one" "two" "" "last"`},
		{name: "empty", file: "a", text: ""},
		{name: "mark", file: "a", text: "\uFEFFone\n", want: `"one"`},
		{name: "long line", file: "a", text: "x\n" + long, fail: "a: record 2: it is longer than 1048576 bytes"},
		{name: "no text", file: "a", text: "x\n\xff\n", fail: "a: record 2: it is not valid UTF-8"},
		{name: "csv", file: "a.csv", text: "id,name\n1,\"a,b\"\n2,\"c\nd\"\n", want: `{"id":"1","name":"a,b"} {"id":"2","name":"c\nd"}`},
		{name: "csv order", file: "a.csv", text: "z,a\n1,2\n", want: `{"z":"1","a":"2"}`},
		{name: "csv header only", file: "a.csv", text: "z,a\n"},
		{name: "csv lists", file: "a.csv", text: "1;2\n3\n", read: ReadFile{NoHeader: true, Comma: ";"}, want: `["1","2"] ["3"]`},
		{name: "csv fields", file: "a.csv", text: "a,b\n1,2\n3\n", fail: "a.csv: record 3: it has 1 fields, the header has 2"},
		{name: "csv header", file: "a.csv", text: "a,a\n1,2\n", fail: `a.csv: record 1: the header has "a" twice`},
		{name: "csv no name", file: "a.csv", text: "a,\n1,2\n", fail: `record 1: field 2 of the header has no name`},
		{name: "csv quote", file: "a.csv", text: "a\nx\"y\n", fail: `record 2: bare " in non-quoted-field`},
		{name: "csv endless quote", file: "a.csv", text: "a\n\"" + long + long, fail: "record 2: it is longer than"},
		{name: "jsonl", file: "a.jsonl", text: "{\"a\": 1}\n\n  12345678901234567890 \nnull\n", want: `{"a":1} 12345678901234567890 null`},
		{name: "jsonl wrong", file: "a.ndjson", text: "1\n{\n", fail: "a.ndjson: record 2: wrong encoding: unexpected end of JSON input"},
		{name: "format", file: "a.csv", text: "1\n", read: ReadFile{Format: FormatJSONL}, want: "1"},
		{name: "gzip", file: "a.csv.gz", text: gzipped(t, "a\n1\n"), want: `{"a":"1"}`},
		{name: "not gzip", file: "a.gz", text: "text", fail: "a.gz: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFiled(t)
			f.put(c.file, c.text)
			c.read.Path = c.file
			got, failure := f.run(&c.read)
			if c.fail != "" || failure != "" {
				if c.fail == "" || !strings.Contains(failure, c.fail) {
					t.Errorf("failed with %q, want %q", failure, c.fail)
				}
				return
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

// TestReadFiles: names of files come in at a port.
func TestReadFiles(t *testing.T) {
	t.Parallel()
	f := newFiled(t)
	f.put("a", "1\n2\n")
	f.put("b.csv", "x\n3\n")
	h := f.e.StartWorker(&ReadFile{Path: "a"})
	f.e.Feed(h, "path", "b.csv", "a", "a")
	f.e.RunUntilIdle()
	want := []string{`"1"`, `"2"`, `{"x":"3"}`, `"1"`, `"2"`, `"1"`, `"2"`}
	if got := outputs(t, h, "out")["out"]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReadFileGoesOn: a job that fails in the middle of a file goes on behind its last
// checkpoint, and writes each record once.
func TestReadFileGoesOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"big.csv", "big.csv.gz", "big.jsonl", "big.txt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			var want []string
			if strings.Contains(name, "csv") {
				text.WriteString("n\n")
			}
			for i := range 2500 {
				fmt.Fprintln(&text, i)
				switch {
				case strings.Contains(name, "csv"):
					want = append(want, fmt.Sprintf(`{"n":"%d"}`, i))
				case strings.Contains(name, "json"):
					want = append(want, fmt.Sprint(i))
				default:
					want = append(want, fmt.Sprintf(`"%d"`, i))
				}
			}
			// It fails twice: at both of these records.
			whole, second := text.String(), strings.Replace(text.String(), "\n2222\n", "\n\xff222\n", 1)
			first := strings.Replace(second, "\n1111\n", "\n\xff111\n", 1)
			if strings.HasSuffix(name, ".gz") {
				whole, second, first = gzipped(t, whole), gzipped(t, second), gzipped(t, first)
			}
			f := newFiled(t)
			f.put(name, first)
			h := f.e.StartWorker(&ReadFile{Path: name})
			f.e.RunUntilIdle()
			var got []string
			for i, text := range []string{second, whole} {
				if n := len(f.e.Failures(h)); n != i+1 {
					t.Fatalf("%d failures, want %d", n, i+1)
				}
				n := len(got)
				got = append(got, outputs(t, h, "out")["out"]...)
				if len(got) == n {
					t.Errorf("nothing was committed before failure %d", i+1)
				}
				f.put(name, text)
				if err := h.Retry(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.e.RunUntilIdle()
			}
			if got = append(got, outputs(t, h, "out")["out"]...); !slices.Equal(got, want) {
				t.Errorf("got %d records, want %d in order", len(got), len(want))
			}
		})
	}
}

func TestReadFileShorter(t *testing.T) {
	t.Parallel()
	f := newFiled(t)
	f.put("a", strings.Repeat("x\n", 1500)+"\xff\n")
	h := f.e.StartWorker(&ReadFile{Path: "a"})
	f.e.RunUntilIdle()
	f.put("a", "x\n")
	if err := h.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.e.RunUntilIdle()
	if failure := f.failure(h); !strings.Contains(failure, "it is shorter than when an earlier run read it") {
		t.Errorf("got %q", failure)
	}
}

// TestPaths: files outside of the root, and what is no file, are refused.
func TestPaths(t *testing.T) {
	t.Parallel()
	f := newFiled(t)
	f.put("a", "1\n")
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": outside, "up": "../" + filepath.Base(filepath.Dir(outside)), "in": "a"} {
		if err := os.Symlink(target, filepath.Join(f.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.root, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(f.root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, fail := range map[string]string{
		"a":                         "",
		"./dir/../a":                "",
		"in":                        "",
		filepath.Join(f.root, "a"):  "",
		outside:                     "is outside of",
		"../x":                      "is outside of",
		"out":                       "escapes",
		"up/secret":                 "escapes",
		"dir":                       "dir is not a regular file",
		"pipe":                      "pipe is not a regular file",
		"missing":                   "no such file",
		filepath.Join(f.root, ".."): "is outside of",
	} {
		_, failure := f.run(&ReadFile{Path: path})
		if fail == "" && failure != "" || fail != "" && !strings.Contains(failure, fail) {
			t.Errorf("reading %s: got %q, want %q", path, failure, fail)
		}
		if path == "missing" || fail == "" {
			continue
		}
		if _, failure := f.run(&WriteFile{Path: path, Mode: ModeTruncate}); !strings.Contains(failure, fail) {
			t.Errorf("writing %s: got %q, want %q", path, failure, fail)
		}
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "secret\n" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, before string
		write              WriteFile
		in                 []string
		want, fail         string
	}{
		{name: "lines", file: "a", in: []string{`"one"`, `""`, `{"a": [1]}`, `12345678901234567890`}, want: "one\n\n{\"a\":[1]}\n12345678901234567890\n"},
		{name: "lines of several", file: "a", in: []string{`"one\ntwo"`}, fail: "a text of several lines cannot be a line"},
		{name: "nothing", file: "a", want: ""},
		{name: "jsonl", file: "a.jsonl", in: []string{`"one\ntwo"`, `null`}, want: "\"one\\ntwo\"\nnull\n"},
		{
			name: "csv", file: "a.csv", in: []string{`{"z":1.50,"a":"x,y"}`, `{"a":null,"z":true}`, `{"z":{"b":[1]}}`, `["l",2]`},
			want: "z,a\n1.50,\"x,y\"\ntrue,\n\"{\"\"b\"\":[1]}\",\nl,2\n",
		},
		{name: "csv columns", file: "a.csv", write: WriteFile{Columns: []string{"b", "a"}, Comma: ";"}, in: list(`{"a":1} {"b":2}`), want: "b;a\n;1\n2;\n"},
		{name: "csv other field", file: "a.csv", in: list(`{"a":1} {"b":2}`), fail: `there is no column "b"`},
		{name: "csv lists", file: "a.csv", in: []string{`["1",2]`, `[""]`, `["a"]`}, want: "1,2\n\"\"\na\n"},
		{name: "csv no fields", file: "a.csv", in: list(`{}`), fail: "the first object has no fields"},
		{name: "csv neither", file: "a.csv", in: list(`5`), fail: "a number is neither an object nor a list"},
		{name: "create", file: "a", before: "old\n", fail: "a is there and not empty"},
		{name: "append", file: "a.csv", before: "z\n1\n", write: WriteFile{Mode: ModeAppend}, in: list(`{"z":2}`), want: "z\n1\n2\n"},
		{name: "truncate", file: "a", before: "old\n", write: WriteFile{Mode: ModeTruncate}, in: list(`1`), want: "1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFiled(t)
			if c.before != "" {
				f.put(c.file, c.before)
			}
			c.write.Path = c.file
			h := f.e.StartWorker(&c.write)
			f.e.Feed(h, "in", raws(c.in)...)
			f.e.CloseIn(h, "in")
			f.e.RunUntilIdle()
			failure := f.failure(h)
			if c.fail != "" || failure != "" {
				if c.fail == "" || !strings.Contains(failure, c.fail) {
					t.Errorf("failed with %q, want %q", failure, c.fail)
				}
				return
			}
			if got := f.text(c.file); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWriteFileAfterCrash: a run wrote to the file and died before its commit.
func TestWriteFileAfterCrash(t *testing.T) {
	t.Parallel()
	f := newFiled(t)
	h := f.e.StartWorker(&WriteFile{Path: "a"})
	f.e.Feed(h, "in", "one", "two")
	f.e.RunUntilIdle()
	f.put("a", "one\ntwo\nthree\nfour\nfi")
	f.e.Feed(h, "in", "three")
	f.e.RunUntilIdle()
	if got := f.text("a"); got != "one\ntwo\nthree\nfour\nfi" {
		t.Errorf("got %q", got)
	}
	f.e.CloseIn(h, "in")
	f.e.RunUntilIdle()
	if got := f.text("a"); got != "one\ntwo\nthree\n" {
		t.Errorf("got %q", got)
	}
}

func TestWriteFileShortened(t *testing.T) {
	t.Parallel()
	f := newFiled(t)
	h := f.e.StartWorker(&WriteFile{Path: "a"})
	f.e.Feed(h, "in", "one", "two")
	f.e.RunUntilIdle()
	f.put("a", "one\n")
	f.e.Feed(h, "in", "three")
	f.e.RunUntilIdle()
	if failure := f.failure(h); failure != "a has 4 bytes and 8 were written: somebody shortened it" {
		t.Errorf("got %q", failure)
	}
}
