// Mounted serves the page as a program of its own would: below a prefix, read-only below another one, and behind a check of who asks
// below a third. The tests in the browser ask it; its first line is its address.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/web"
)

func main() {
	if err := serve(context.Background(), os.Args[1]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, redis string) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: redis})
	if err != nil {
		return err
	}
	server, err := api.New(api.Config{Store: store})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/jobs/", http.StripPrefix("/ops/jobs", web.Handler(web.Config{API: server})))
	mux.Handle("/look/", http.StripPrefix("/look", web.Handler(web.Config{API: server, ReadOnly: true})))
	mux.Handle("/gate/", http.StripPrefix("/gate", web.Handler(web.Config{API: server, Authorize: func(r *http.Request) error {
		if c, err := r.Cookie("session"); err != nil || c.Value != "good" {
			return errors.New("log in first")
		}
		return nil
	}})))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens for as long as it lives
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, "http://"+listener.Addr().String())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener)
}
