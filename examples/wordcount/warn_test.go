package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newWarnings(&out)
		log := slog.New(w)
		log.Info("nothing to worry about")
		log.Error("job failed", "error", "told otherwise")
		for n := range 400 {
			log.With("job", n).Warn("sweep failed", "error", errors.New("OOM command\nnot allowed"))
			log.Error(fmt.Sprintf("asynq: read tcp 127.0.0.1:%d: broken", 40000+n))
			log.Error("lock: cannot reach Redis: dial: broken; check that it runs")
			log.Warn("no worker of this type", "type", "a", "job", fmt.Sprintf("t.%d", n))
			log.Warn("no worker of this type", "type", "b", "job", fmt.Sprintf("t.%d", n))
			time.Sleep(5 * time.Millisecond)
		}
		want := `wordcount: warning: sweep failed: OOM command; not allowed
wordcount: warning: asynq: read tcp 127.0.0.1:40000: broken
wordcount: warning: no worker of this type, type a, job t.0
wordcount: warning: no worker of this type, type b, job t.0
`
		if out.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
		}
		out.Reset()
		time.Sleep(sameFor)
		log.Warn("sweep failed", "error", "OOM command; not allowed")
		if !strings.HasPrefix(want, out.String()) || out.Len() == 0 {
			t.Errorf("after a while: got %q", out.String())
		}
		out.Reset()
		w.hold()
		log.Warn("another")
		if out.Len() > 0 || w.recent() != "another" {
			t.Errorf("held: wrote %q, the recent one is %q", out.String(), w.recent())
		}
		time.Sleep(sameFor + 1)
		if w.recent() != "" {
			t.Errorf("%q is still recent", w.recent())
		}
		w.mute()
		log.Warn("too late")
		w.line("too late")
		if out.Len() > 0 || w.recent() != "" {
			t.Errorf("muted: wrote %q, the recent one is %q", out.String(), w.recent())
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	const text = "asynq: Dequeue error: dial tcp 127.0.0.1:7391: connect: connection refused; is it there?"
	for columns, want := range map[int]string{
		100: text,
		40:  "asynq: Dequeue error… connection refused",
		20:  "asynq: Dequeue erro…",
	} {
		if got := shorten(text, columns); got != want {
			t.Errorf("%d columns: got %q, want %q", columns, got, want)
		}
	}
}
