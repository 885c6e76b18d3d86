package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/explain"
)

// firstPatience is for how long nothing may come out before it is said what the graph waits for.
const firstPatience = 5 * time.Second

// mostReasons is how many lines that takes, about.
const mostReasons = 6

// quiet says what a graph waits for when nothing has come out for a while, and again when that has changed, less and less often.
type quiet struct {
	from     time.Time
	printed  int
	patience time.Duration
	said     string
}

func (q *quiet) say(ctx context.Context, r *running) error {
	if q.printed != r.printed {
		*q = quiet{from: time.Now(), printed: r.printed, patience: firstPatience, said: q.said}
	}
	if time.Since(q.from) < q.patience {
		return nil
	}
	reasons, err := explain.Ask(ctx, r.store, r.handle, string(r.handle.ID()), false)
	q.from, q.patience = time.Now(), min(2*q.patience, 5*time.Minute)
	if err != nil {
		return nil //nolint:nilerr // it is a remark: what matters is read elsewhere
	}
	for n, one := range reasons {
		if end := strings.LastIndex(one.Text, "; "); !r.kept && one.Command != "" && end > 0 {
			reasons[n].Text, reasons[n].Command = one.Text[:end], "" // no other command reaches its jobs
		}
	}
	var text strings.Builder
	text.WriteString("weir: nothing has come out for a while:\n")
	if err := printReasons(&text, reasons[:min(len(reasons), mostReasons)]); err != nil || text.String() == q.said {
		return err
	}
	q.said = text.String()
	_, err = io.WriteString(r.errs, q.said)
	return err
}
