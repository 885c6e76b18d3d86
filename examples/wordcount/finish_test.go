package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// An error is told at once, and an engine that does not end is not waited for.
func TestGivesUpOnTheEngine(t *testing.T) {
	t.Parallel()
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: redistest.StartMini(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, "word")
	o := options{tree: "books", top: 10, paths: []Path{Path(path)}}
	h, err := o.start(t.Context(), job.NewClient(store))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil { // so the wait for the tree fails
		t.Fatal(err)
	}
	released := make(chan struct{})
	defer close(released)
	run := func(context.Context) error { <-released; return nil }
	var told error
	var after time.Duration
	start := time.Now()
	err = await(t.Context(), h, run, silent{}, newWarnings(io.Discard), func(err error) {
		told, after = err, time.Since(start)
	})
	if took := time.Since(start); !errors.As(err, new(abandoned)) || !errors.Is(err, told) || after > drain/2 || took < drain || took > 5*drain {
		t.Errorf("got %v after %s, was told %v after %s", err, took, told, after)
	}
}

func TestTell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    options
		err  error
		says string
	}{
		{options{redis: "redis://", started: true}, errors.New("Redis\ndied"), "Redis; died; the same command continues it"},
		{options{redis: "redis://", started: true, named: true, tree: "wordcount-x"}, job.ErrUnreachable, "cannot reach Redis; to continue, add --tree wordcount-x"},
		{options{redis: "redis://"}, job.ErrUnreachable, "cannot reach Redis"},
		{options{started: true}, job.ErrFailed, job.ErrFailed.Error()},
		{
			options{redis: "redis://", started: true},
			fmt.Errorf("the count was terminated; %w", errAgain),
			"the count was terminated; count again under another --tree",
		},
	} {
		var stderr bytes.Buffer
		if c.o.tell(&stderr, c.err); stderr.String() != "wordcount: "+c.says+"\n" {
			t.Errorf("got %q, want %q", stderr.String(), c.says)
		}
	}
}
