package weir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// posters is how many connections write to ports at a time, each to a port of its own.
const posters = 16

// web is a server of the HTTP API, and a client of it, in this process.
type web struct {
	*rig
	url    string
	client *http.Client
}

// online serves the API on the loopback interface for the time that fn runs.
func (r *rig) online(ctx context.Context, fn func(w *web) error) (err error) {
	handler, err := api.New(api.Config{Store: r.store})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, handler.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	over := make(chan error, 1)
	go func() { over <- server.Serve(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * r.lab.Size.Waiters}
	defer func() {
		transport.CloseIdleConnections()
		err = errors.Join(err, handler.Close(), server.Close())
		if served := <-over; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}()
	return fn(&web{r, "http://" + listener.Addr().String(), &http.Client{Transport: transport}})
}

// post sends JSON, and reads the answer into v, which may be nil.
func (w *web) post(ctx context.Context, path string, body []byte, v any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := w.client.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("POST %s: %s: %s", path, answer.Status, raw)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(raw, v)
	}
	return err
}

// posts has programs write to ports by HTTP: one message a request, and then ten. Nobody reads them.
func posts(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var all []lab.Figure
		return all, r.online(ctx, func(w *web) error {
			for _, size := range []int{1, 10} {
				figures, err := w.posts(ctx, size)
				if all = append(all, figures...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// posts writes that many messages a request.
func (w *web) posts(ctx context.Context, size int) ([]lab.Figure, error) {
	each := w.lab.Size.Posts / posters / size
	var times [posters]lab.Times
	var handles [posters]*client.Handle
	for i := range handles {
		var err error
		if handles[i], err = w.rig.client.Start(ctx, job.Single(&listener{}, ""), job.EnginesLater()); err != nil {
			return nil, err
		}
	}
	used, err := w.lab.Measure(ctx, func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for i, h := range handles {
			group.Go(func() error {
				for k := range each {
					messages := make([]string, size)
					for j := range messages {
						messages[j] = lab.Item(k*size + j)
					}
					body, err := json.Marshal(map[string]any{"messages": messages})
					if err != nil {
						return err
					}
					began := time.Now()
					if err := w.post(ctx, "/v1/jobs/"+string(h.ID())+"/ports/in/in/messages", body, nil); err != nil {
						return err
					}
					times[i] = append(times[i], time.Since(began))
				}
				return nil
			})
		}
		return group.Wait()
	})
	if err != nil {
		return nil, err
	}
	var took lab.Times
	for i, h := range handles {
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		if p, _ := info.Port(port.Input, "in"); int(p.Waiting) != each*size {
			return nil, wrong(info, "%d messages wait in its port, and %d were written", p.Waiting, each*size)
		}
		took = append(took, times[i]...)
	}
	name := map[int]string{1: "posts", 10: "posts.ten"}[size]
	return append(used.Throughput(name, posters*each*size, "messages"), took.Figures(name)...), nil
}

// leases has many workers wait for a run over HTTP, and creates one job after another: exactly one of them gets each.
func leases(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var times lab.Times
		err := r.online(ctx, func(w *web) error {
			if err := w.post(ctx, "/v1/workers", []byte(`{"types":[{"type":"leased"}]}`), nil); err != nil {
				return err
			}
			wait, stop := context.WithCancel(ctx)
			defer stop()
			got := make(chan job.ID, w.lab.Size.Waiters)
			var asking atomic.Int64
			var wg sync.WaitGroup
			for range w.lab.Size.Waiters {
				wg.Go(func() { w.leaseAll(wait, &asking, got) })
			}
			defer func() { stop(); wg.Wait() }()
			for asking.Load() < int64(w.lab.Size.Waiters) {
				if err := lab.Doze(ctx); err != nil {
					return err
				}
			}
			var err error
			times, err = w.leased(ctx, got)
			return err
		})
		return times.Figures("leases"), err
	})
}

// leaseAll asks for runs, one at a time, and commits each, until ctx ends.
func (w *web) leaseAll(ctx context.Context, asking *atomic.Int64, got chan<- job.ID) {
	for asking.Add(1); ctx.Err() == nil; {
		var answer struct {
			Runs []struct {
				Run string
				Job job.ID
			}
		}
		if err := w.post(ctx, "/v1/runs/lease", []byte(`{"types":["leased"],"wait":"1m"}`), &answer); err != nil {
			continue
		}
		for _, run := range answer.Runs {
			got <- run.Job
			if err := w.post(ctx, "/v1/runs/commit", fmt.Appendf(nil, `{"run":%q}`, run.Run), nil); err != nil {
				continue
			}
		}
	}
}

// leased creates jobs one at a time, and returns how long it took until somebody had each.
func (w *web) leased(ctx context.Context, got <-chan job.ID) (times lab.Times, err error) {
	for range w.lab.Size.Wakes {
		if err := lab.Doze(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		made, err := w.rig.client.Create(ctx, job.New{Type: "leased"})
		if err != nil {
			return nil, err
		}
		select {
		case id := <-got:
			if times = append(times, time.Since(began)); id != made.ID() {
				return nil, fmt.Errorf("job %s was leased, and %s was created", id, made.ID())
			}
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("nobody has leased job %s", made.ID())
		}
	}
	return times, nil
}
