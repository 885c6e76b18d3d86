package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// askRedis is how often a Redis that is away is asked whether it is back.
const askRedis = 250 * time.Millisecond

// place is the address of the HTTP API, and the server there. The address is told on standard output once something answers.
type place struct {
	net.Listener
	tell   func() error
	root   relay
	server *http.Server
	served chan error // what the server ended with; nil until it serves
}

// relay is a handler that can be replaced by another one while requests come: none of them is dropped, and first has answered all of its own when
// next begins. Until there is a handler requests wait.
type relay struct {
	mu    sync.RWMutex
	held  bool         // the lock is held for next
	first http.Handler // answers with the lock held
	next  http.Handler // answers without it, from when it is set
}

// ServeHTTP implements http.Handler.
func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.RLock()
	next := r.next
	if next == nil {
		defer r.mu.RUnlock()
		r.first.ServeHTTP(w, req)
		return
	}
	r.mu.RUnlock()
	next.ServeHTTP(w, req)
}

// hold lets requests wait for what comes next, once those in progress are answered.
func (r *relay) hold() {
	r.mu.Lock()
	r.held = true
}

// become answers requests with next from now on.
func (r *relay) become(next http.Handler) {
	if !r.held {
		r.hold()
	}
	r.next, r.held = next, false
	r.mu.Unlock()
}

// connect opens the store, and the address. With a journal it need not wait for Redis to do that: until Redis answers, payloads are accepted there.
func (f *apiFlags) connect(c *cobra.Command, s *settings) (*redisstore.Store, *place, error) {
	store, err := s.open(c.Context())
	gone := err
	if err != nil && (f.journal == "" || !job.Temporary(err)) {
		return nil, nil, err
	}
	l, err := f.listen(c, false)
	if err != nil {
		if store != nil {
			err = errors.Join(err, store.Close())
		}
		return nil, nil, err
	}
	at := f.placeOf(c, l)
	if gone != nil {
		if store, err = f.await(c, s, at, gone); err != nil {
			return nil, nil, errors.Join(err, at.Close())
		}
	}
	return store, at, nil
}

// placeOf makes the server of a listener. It does not serve yet.
func (f *apiFlags) placeOf(c *cobra.Command, l net.Listener) *place {
	at := &place{Listener: l}
	told := false
	at.tell = func() (err error) {
		if !told {
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s://%s\n", f.scheme(), l.Addr())
		}
		told = true
		return err
	}
	at.server = newHTTPServer(&at.root)
	return at
}

// serve begins to answer requests, unless it has begun already.
func (f *apiFlags) serve(at *place) {
	if at.served != nil {
		return
	}
	at.served = make(chan error, 1)
	go func() { at.served <- f.serveOn(at.server, at.Listener) }()
}

// Close implements net.Listener: requests in progress are cut off.
func (at *place) Close() error {
	if at.served == nil {
		return at.Listener.Close()
	}
	err := at.server.Close()
	if at.root.held {
		at.root.become(http.NotFoundHandler()) // for requests that waited, whose connections are closed
	}
	return err
}

// await accepts payloads until Redis answers.
func (f *apiFlags) await(c *cobra.Command, s *settings, at *place, gone error) (*redisstore.Store, error) {
	cfg, err := s.config()
	if err != nil {
		return nil, err
	}
	waiting, err := api.NewWaiting(api.Config{Tokens: f.tokens, Hosts: f.hosts, Journal: f.journal, JournalLimit: f.journalLimit}, cmp.Or(cfg.Namespace, redisstore.DefaultNamespace))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: %v\nweir: until it answers, payloads are accepted into the journal, and all else waits\n", gone); err != nil {
		return nil, errors.Join(err, waiting.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/", waiting)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	at.root.first = api.PlainPaths(mux)
	f.serve(at)
	store, err := (*redisstore.Store)(nil), at.tell()
	for err == nil && store == nil {
		if store, err = s.open(c.Context()); job.Temporary(err) {
			err = nil
		}
		if store == nil && err == nil {
			select {
			case <-c.Context().Done():
				err = c.Context().Err()
			case err = <-at.served:
			case <-time.After(askRedis):
			}
		}
	}
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), apiDrain)
		defer cancel()
		return nil, errors.Join(err, at.server.Shutdown(late), waiting.Close())
	}
	at.root.hold() // requests that come now wait for the API, which has the journal next
	if err := waiting.Close(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}
