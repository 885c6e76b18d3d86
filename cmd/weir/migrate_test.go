package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

// A namespace of an older version has the layout of this one once it is migrated.
func TestMigrate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	weir := func(args ...string) (int, string) {
		var out, stderr bytes.Buffer
		code := run(t.Context(), append(args, "--redis", server.URL(), "--namespace", "old"), &out, &stderr)
		return code, out.String() + stderr.String()
	}
	weir("jobs") // makes the namespace
	client := server.Client(t)
	if err := client.HSet(t.Context(), "weir:{old}:meta", "format", "2").Err(); err != nil {
		t.Fatal(err)
	}
	if _, text := weir("doctor"); !strings.Contains(text, "has layout 2 and") || !strings.Contains(text, "weir migrate") {
		t.Errorf("doctor says\n%s", text)
	}
	if code, text := weir("migrate"); code != 0 || text != "namespace old has the layout of this version\n" {
		t.Errorf("exit code %d: %s", code, text)
	}
	if got := client.HGet(t.Context(), "weir:{old}:meta", "format").Val(); got != "3" {
		t.Errorf("format %s", got)
	}
	if code, text := weir("migrate"); code != 0 || text != "namespace old has the layout of this version already\n" {
		t.Errorf("exit code %d: %s", code, text)
	}
}
