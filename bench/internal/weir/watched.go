package weir

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// watchedStream is stream while many follow over HTTP what happens: the list of jobs, a row live, its log and its last port, a quarter
// each. They are in this process, too.
func watchedStream(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) (figures []lab.Figure, err error) {
		name, n, rows := l.Size.Rows()
		s := singly(name, n, rows, tuned{})
		handles := make([]*client.Handle, rows)
		for i := range handles {
			if handles[i], err = r.client.Start(ctx, s.graph(), job.EnginesLater()); err != nil {
				return nil, err
			}
		}
		return figures, r.online(ctx, func(w *web) error {
			listening, stop := context.WithCancel(ctx)
			var wg sync.WaitGroup
			defer func() { stop(); wg.Wait() }()
			var open, failed atomic.Int64
			for i := range l.Size.Waiters {
				id := handles[i/4%rows].ID()
				path := []string{
					"/v1/events/jobs?all=true", fmt.Sprintf("/v1/jobs/%s/live", id), fmt.Sprintf("/v1/jobs/%s/events", id),
					fmt.Sprintf("/v1/jobs/%s/ports/out/out/events", id),
				}[i%4]
				wg.Go(func() {
					if w.listen(listening, path, &open) != nil {
						failed.Add(1)
					}
				})
			}
			for open.Load()+failed.Load() < int64(l.Size.Waiters) {
				if err := lab.Doze(ctx); err != nil {
					return err
				}
			}
			if n := failed.Load(); n > 0 {
				return fmt.Errorf("%d of %d streams were refused", n, l.Size.Waiters)
			}
			figures, err = s.measure(ctx, r, handles)
			return err
		})
	})
}

// listen reads a stream of events until ctx ends. An error says that there was none.
func (w *web) listen(ctx context.Context, path string, open *atomic.Int64) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return err
	}
	answer, err := w.client.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	open.Add(1)
	_, _ = io.Copy(io.Discard, answer.Body) // until it is cut off
	return nil
}
