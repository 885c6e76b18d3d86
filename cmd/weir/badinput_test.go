package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
)

// What is wrong in one place of a command line, by the kind of the place.
var badWords = map[string][]string{
	"duration": {"", "5", "x", "-1s", "1e9s", "5 m", "9999999h9999999h", "0x5s", "1d1", "∞"},
	"ago":      {"", "5", "x", "-1s", "1e9s", "yesterday", "5 m", "99999999999999d"},
	"count":    {"", "x", "-1", "1.5", "1e3", "99999999999999999999", "0x", " 1", "½"},
	"output":   {"xml", "JSON", "json,yaml", "table\x00"},
	"status":   {"", "done", "failed,", "failed,done", "FAILED", "*"},
	"sort":     {"", "+created", "name", "-status-", "created,ran"},
	"label":    {"", "=", "=x", "a b=x", "a=\x01", "a{}=x", "ä=x", strings.Repeat("a", 64) + "=x"},
	"name":     {"a b", "a\n", "ä", "{a}", "a*", "\xff", "\x00", strings.Repeat("a", 200), "-"},
	"job":      {"", "0", "x y", "*", "nobody", "01A1FFCD-8328-72A1-A3D0-059ACCB38402", "{}", "\xff", "one.x", strings.Repeat("f", 5000)},
	"port":     {"", "no", "a b", "{in}", "in\n", "in:x", "\xff", "*", strings.Repeat("a", 200)},
	"args":     {"", "{", "1 2", "[1]", `"x"`, "NaN", `{"a":"\ud800"}`, "\xff", `{"a":01}`, "{}{}"},
	"url":      {"x", "http://127.0.0.1:1", "redis://", "redis://:x@", "redis://127.0.0.1:99999", "redis://127.0.0.1:1/x", "redis://127.0.0.1:1?no=1", "redis://a b", "rediss://127.0.0.1:1?tls_ca_file=/nowhere", "redis://127.0.0.1:1?tls_ca_file=x"},
	"space":    {"A", "a b", "a_b", "ä", "-a", strings.Repeat("a", 64), "a:b", "{a}"},
	"file":     {"nowhere.yaml", "empty.yaml", "binary.yaml", "bom.yaml", "list.yaml", "type.yaml", "cycle.yaml", "key.yaml", "deep.yaml", ".", "x\x00.yaml"},
}

// The places where something can be wrong: a word of a command line in braces says which.
var places = []string{
	"jobs --older {ago}", "jobs --newer {ago}", "jobs --limit {count}", "jobs -o {output}", "jobs --status {status}", "jobs --sort {sort}", "jobs --after {job}", "jobs --label {label}",
	"show {job}", "tree {job}", "why {job}", "ports {job}", "peek {job} in", "log {job}", "trace {job} in 0", "wait {job}", "state get {job}", "lock {job}", "unlock {job} x",
	"terminate {job}", "delete {job}", "adopt {job} one kid", "adopt one {job} kid", "disown {job} kid", "alias {job} x", "send {job} in 1", "read {job} in", "run {job}",
	"peek one {port}", "read one {port}", "send one {port} 1", "trace one {port} 0",
	"peek one in -n {count}", "log one -n {count}", "log one --since {duration}", "trace one in {count}", "tree one --depth {count}", "tree one --watch --interval {duration}",
	"show one -o {output}", "tree one -o {output}", "peek one in -o {output}", "log one -o {output}", "stats -o {output}", "doctor -o {output}", "types -o {output}",
	"wait one --timeout {duration}", "lock one --ttl {duration}", "lock one --wait {duration}", "run one --after {duration}", "send one in 1 --wait {duration}x",
	"create img.Resize --args {args}", "create img.Resize --alias {name}", "create img.Resize --label {label}", "create img.Resize --queue {name}", "create {name}", "create img.Resize --in {duration}",
	"create img.Resize --parent one --name {name}", "create img.Resize --parent {job} --name x", "alias one {name}", "adopt album one {name}",
	"queue pause {name}", "queue resume {name}", "check {file}", "run {file}", "graph draw {file}", "graph convert {file}",
	"jobs --namespace {space}", "acl {name}", "acl reader --namespace {space}", "acl worker --redis {url}", "jobs --redis {url}", "jobs --keys {file}",
}

// right are words that only look wrong, by their place.
var right = map[string][]string{
	"jobs --after {job}":       {""},
	"graph convert {file}":     {"type.yaml"},                                 // it says nothing about types
	"acl worker --redis {url}": {"rediss://127.0.0.1:1?tls_ca_file=/nowhere"}, // nothing is asked of Redis
	"jobs --sort {sort}":       {""},
}

// badFiles are graphs that are none.
var badFiles = map[string]string{
	"empty.yaml": "", "binary.yaml": "\x00\xff\xfe", "bom.yaml": "\ufeff\ufeff{", "list.yaml": "- a\n- b\n", "type.yaml": "weir: 1\nnodes:\n  a: {type: nobody}\n",
	"cycle.yaml": "weir: 1\nnodes: &a\n  x: *a\n", "key.yaml": "weir: 1\nnode: {}\n", "deep.yaml": strings.Repeat("[", 20_000),
}

// A wrong word anywhere on a command line is one line, or for a file one a problem, that says
// what to do, has its exit code, and changes nothing.
func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	for name, text := range badFiles {
		enginetest.Check(w, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	before := w.keys()
	tried := 0
	for _, place := range places {
		open, rest, _ := strings.Cut(place, "{")
		kind, after, _ := strings.Cut(rest, "}")
		if badWords[kind] == nil {
			t.Fatalf("no bad words for %s", place)
		}
		for _, word := range badWords[kind] {
			if slices.Contains(right[place], word) {
				continue
			}
			tried++
			given := word
			if kind == "file" {
				given = filepath.Join(dir, word)
			}
			args := strings.Fields(open)
			args = append(append(args, given+strings.TrimSuffix(after, strings.TrimLeft(after, "x"))), strings.Fields(strings.TrimLeft(after, "x"))...)
			if !slices.Contains(args, "--redis") {
				args = append(args, "--redis", w.url)
			}
			w.wrong(args)
		}
	}
	if tried < 300 {
		t.Errorf("only %d bad words were tried", tried)
	}
	t.Logf("%d bad words", tried)
	for k, v := range w.keys() {
		if before[k] != v {
			t.Errorf("a wrong command line changed or made %s", k)
		}
	}
}

// wrong runs a wrong command line.
func (w *world) wrong(args []string) {
	w.Helper()
	defer func() {
		if v := recover(); v != nil {
			w.Errorf("weir %.80q panics: %v", args, v)
		}
	}()
	var stdout, stderr bytes.Buffer
	code := run(w.Context(), args, &stdout, &stderr)
	text := stderr.String()
	lines := strings.Count(text, "\n")
	isFile := strings.Contains(text, ".yaml")
	switch {
	case code != exitUsage && code != exitNotFound && code != exitRefused && code != exitError:
		w.Errorf("weir %.80q: exit code %d: %.300s", args, code, text)
	case lines < 1 || lines > 1 && !isFile || len(text) > 4000 || strings.Contains(text, "goroutine"):
		w.Errorf("weir %.80q: it says %d lines: %.600s", args, lines, text)
	case strings.ContainsAny(text, "\x00\x1b\r"):
		w.Errorf("weir %.80q: it says %.300q", args, text)
	}
}
