package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

// weir stats --watch prints again and again until it is told to stop, which is no failure.
func TestStatsWatch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		code <- run(ctx, []string{"stats", "--watch", "-o", "jsonl", "--redis", server.URL()}, w, &stderr)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	for n := range 2 {
		if !lines.Scan() {
			t.Fatalf("no line %d: %s", n, stderr.String())
		}
		var v statsView
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil || v.Namespace != "main" || v.Shards != 64 {
			t.Errorf("line %d: %s, %v", n, lines.Text(), err)
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, r) }() // what it was about to print
	if c := <-code; c != 0 || stderr.Len() > 0 {
		t.Errorf("it ended with code %d: %s", c, stderr.String())
	}
}
