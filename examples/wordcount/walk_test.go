package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Names that make trouble when whole paths are compared, or shown, or sent as JSON.
var oddNames = []string{
	"a", "a.b", "a-b", "a b", "ab", "A", "ä", "日本", ".hidden", "-flag", "*", "a\nb", "\xff\xfe", "base64:YQ==",
	`"quoted"`, "\x01", "b", "b.d", "\u2028", "~", "𝒜", "%s", "a\\b", "z",
}

func writeFile(t interface{ Fatal(...any) }, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func walkAll(t interface{ Fatal(...any) }, root, after string) []string {
	var rels []string
	for f, err := range walk(root, after) {
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(root, f.rel); string(f.Path) != want {
			t.Fatal("path", f.Path, "want", want)
		}
		rels = append(rels, f.rel)
	}
	return rels
}

// A walk that begins after any file of another is exactly the rest of that.
func TestWalkResumes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		component := rapid.SampledFrom(oddNames)
		paths := rapid.SliceOfN(rapid.SliceOfN(component, 1, 4), 0, 25).Draw(rt, "paths")
		for _, p := range paths {
			path := filepath.Join(append([]string{root}, p...)...)
			// A name may be taken by a file where a directory is wanted, or the other way round.
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			_ = os.WriteFile(path, []byte("x"), 0o644)
		}
		all := walkAll(rt, root, "")
		var want []string
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				want = append(want, strings.TrimPrefix(path, root+"/"))
			}
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(all, want) {
			rt.Fatalf("got %q, want %q", all, want)
		}
		for i, after := range all {
			if got := walkAll(rt, root, after); !slices.Equal(got, all[i+1:]) {
				rt.Fatalf("after %q: got %q, want %q", after, got, all[i+1:])
			}
		}
	})
}

func TestWalkTakesRegularFilesOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "dir", "file"), "x")
	for link, target := range map[string]string{"link": "dir/file", "dirlink": "dir", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := walkAll(t, root, ""); !slices.Equal(got, []string{"dir/file"}) {
		t.Errorf("got %q", got)
	}
	if got := walkAll(t, filepath.Join(root, "dirlink"), ""); !slices.Equal(got, []string{"file"}) {
		t.Errorf("through a link to the root: got %q", got)
	}
}

func TestWalkOfNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gone")
	for _, err := range walk(path, "") {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, name := range oddNames {
		f.Add("/" + name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(Path(text))
		if err != nil {
			t.Fatal(err)
		}
		var back Path
		if err := json.Unmarshal(raw, &back); err != nil || string(back) != text {
			t.Errorf("%q became %q by way of %s: %v", text, back, raw, err)
		}
		if strings.ContainsAny(Path(text).String(), "\n\x1b") {
			t.Errorf("%q is not shown on one line", text)
		}
	})
}
