package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/weirworks/weir/internal/term"
)

// sameFor is how long a warning is not repeated, and how long one is recent.
const sameFor = 5 * time.Second

// warnings passes what the engine logs on to people: as lines, each once in a while,
// until hold; then the recent one is there to be asked for. It is safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	w     io.Writer
	held  bool
	muted bool
	told  map[string]time.Time
	last  string
	at    time.Time // of last
}

func newWarnings(w io.Writer) *warnings { return &warnings{w: w, told: make(map[string]time.Time)} }

// line writes a line, unless muted.
func (w *warnings) line(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.muted {
		fmt.Fprintln(w.w, text)
	}
}

// hold ends the writing of warnings: recent returns them.
func (w *warnings) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

// mute drops all that follows. When it has returned, w is written to no more.
func (w *warnings) mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = true
}

// recent returns the last warning, if it is not old.
func (w *warnings) recent() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.at) > sameFor {
		return ""
	}
	return w.last
}

// Enabled implements slog.Handler.
func (*warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "job failed" {
		return nil // whoever waits for the tree gets the same error
	}
	text, details := r.Message, ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.String()
		} else {
			details += fmt.Sprintf(", %s %s", a.Key, a.Value)
		}
		return true
	})
	w.warn(term.Clean(strings.ReplaceAll(text, "\n", "; ")), term.Clean(details))
	return nil
}

// warn tells a warning. Those of one cause are equal: a Redis that has died is told once,
// not once for each part of the engine.
func (w *warnings) warn(text, details string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.muted {
		return
	}
	now := time.Now()
	w.last, w.at = text+details, now
	maps.DeleteFunc(w.told, func(_ string, at time.Time) bool { return now.Sub(at) > sameFor })
	key := cause(text + details)
	if _, told := w.told[key]; told || w.held {
		return
	}
	w.told[key] = now
	fmt.Fprintln(w.w, "wordcount: warning: "+text+details)
}

// cause is the end of a chain of errors, without advice that follows and without words
// that have digits, such as addresses and IDs.
func cause(text string) string {
	text = text[strings.LastIndex(text, ": ")+1:]
	text, _, _ = strings.Cut(text, ";")
	var kept []string
	for word := range strings.FieldsSeq(text) {
		if !strings.ContainsFunc(word, unicode.IsDigit) {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// shorten cuts a warning to so many columns, with its cause at the end if there is room.
func shorten(text string, columns int) string {
	end := cause(text)
	if lipgloss.Width(text) > columns && lipgloss.Width(end) <= columns/2 {
		return term.Fit(text, columns-lipgloss.Width(end)-1) + " " + end
	}
	return term.Fit(text, columns)
}

// WithAttrs implements slog.Handler. Which job it was about is of no use to people here.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *warnings) WithGroup(string) slog.Handler { return w }
