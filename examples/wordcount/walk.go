package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path is the path of a file. As a message it is a plain text when it is one: file
// names may hold any bytes, messages only valid UTF-8.
type Path string

const coded = "base64:"

// MarshalText implements encoding.TextMarshaler.
func (p Path) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(p)) && !strings.HasPrefix(string(p), coded) {
		return []byte(p), nil
	}
	return []byte(coded + base64.StdEncoding.EncodeToString([]byte(p))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Path) UnmarshalText(text []byte) error {
	code, isCoded := strings.CutPrefix(string(text), coded)
	if !isCoded {
		*p = Path(text)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		return fmt.Errorf("decoding path %q: %w", text, err)
	}
	*p = Path(raw)
	return nil
}

// String shows the path to people: on one line, whatever is in it.
func (p Path) String() string {
	for _, r := range string(p) {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(string(p))
		}
	}
	return string(p)
}

// File is a regular file that was found.
type File struct {
	Path Path  `json:"path"`
	Size int64 `json:"size"`
}

// found is a file and its path below the directory where the walk began.
type found struct {
	File
	rel string
}

// walk yields the regular files below a directory: the names of each directory in byte
// order, subdirectories in their place. after leaves out all files up to and including
// the one of that relative path. root itself may be a symbolic link; links below it are
// no regular files. An error ends the walk.
func walk(root, after string) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		var skip []string
		if after != "" {
			skip = strings.Split(after, string(filepath.Separator))
		}
		walkDir(root, "", skip, yield)
	}
}

// walkDir walks one directory. Comparing name by name gives the walk's own order, which
// is not that of whole paths: "a/b" comes before "a.b", but '/' after '.'.
func walkDir(dir, rel string, skip []string, yield func(found, error) bool) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		yield(found{}, cannotRead(dir, err))
		return false
	}
	for _, e := range entries {
		name := e.Name()
		var rest []string
		if len(skip) > 0 && name <= skip[0] {
			if name < skip[0] || len(skip) == 1 {
				continue
			}
			rest = skip[1:]
		}
		path, below := filepath.Join(dir, name), filepath.Join(rel, name)
		if e.IsDir() {
			if !walkDir(path, below, rest, yield) {
				return false
			}
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			yield(found{}, cannotRead(path, err))
			return false
		}
		if !yield(found{File{Path(path), info.Size()}, below}, nil) {
			return false
		}
	}
	return true
}

// cannotRead says what is wrong with a file and what to do.
func cannotRead(path string, err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	advice := "see to it, then count again, or leave it out"
	switch {
	case errors.Is(err, fs.ErrPermission):
		advice = "make it readable, then count again, or leave it out"
	case errors.Is(err, fs.ErrNotExist):
		advice = "it vanished while being counted; count again"
	}
	return fmt.Errorf("cannot read %s: %w; %s", Path(path), err, advice)
}
