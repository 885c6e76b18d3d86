package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/demo"
	"github.com/weirworks/weir/internal/ownredis"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

func newDev(s *settings) *cobra.Command {
	var f workerFlags
	var web apiFlags
	var data string
	c := &cobra.Command{
		Use:   "dev",
		Short: "Start a Redis of its own and run components on it: all in one, to try things",
		Long: `Start a redis-server of its own on a free port and run jobs of components on it, until stopped:
a second Ctrl-C does not wait for runs in progress. The page and the HTTP API are served beside
them, as weir serve does; if its address is taken, on another port. With --data its data
survive a restart, in an append-only file in that directory; without, they are gone. Where
there is no redis-server, and no --data, the state is in this process. It is not for
production: one process, one machine, no password, and at most the last second lost when the
machine dies.`,
		Example: "  weir dev --data ./weir-data\n  export WEIR_REDIS_URL=redis://127.0.0.1:PORT   # as weir dev says",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if s.redis != "" {
				return usageError{errors.New("weir dev has a Redis of its own: leave --redis away, or use weir worker")}
			}
			if err := errors.Join(f.checkRoot(), f.handlers.check(), web.check()); err != nil {
				return err
			}
			f.passing = data == ""
			url, stop, err := ownRedis(c, data, false)
			switch {
			case err == nil:
				defer stop()
				s.redis = url
			case data != "" || !errors.Is(err, ownredis.ErrNoServer):
				return err
			}
			cfg, err := s.anyConfig()
			if err != nil {
				return err
			}
			cfg.URL = url // none: it is in this process
			store, err := redisstore.Open(c.Context(), cfg)
			if err != nil {
				return err
			}
			defer store.Close()
			go tellJobs(c.Context(), c.ErrOrStderr(), store)
			return f.allInOne(c, s, &web, store, func(page string) error { return f.begun(c, url, page, data) })
		},
	}
	f.add(s, c)
	f.handlers.add(c, false)
	web.add(c)
	c.Flags().StringVar(&data, "data", "", "`DIR`ectory for the data; made if it is not there")
	return c
}

// ownRedis starts a redis-server for this program, whose end is that of the program.
func ownRedis(c *cobra.Command, data string, fresh bool) (url string, stop func(), err error) {
	r, err := ownredis.Start(c.Context(), data, fresh)
	if dir := (*ownredis.DirError)(nil); errors.As(err, &dir) {
		err = usageError{err}
	}
	if err != nil {
		return "", nil, err
	}
	interruptsOf(c.Context()).add(nothing, r.Stop)
	ctx, release := r.Guard(c.Context())
	c.SetContext(ctx)
	return r.URL, func() { release(); r.Stop() }, nil
}

// begun says where Redis and the page are, and on a terminal more.
func (f *workerFlags) begun(c *cobra.Command, url, page, data string) error {
	life, export := url+", of its own; its data are gone with it: --data DIR keeps them", "WEIR_REDIS_URL="+url
	switch {
	case data != "":
		life = url + ", of its own; its data are in " + data
	case url == "":
		life = "in this process, whose end is that of its data; with a redis-server (apt install redis-server) --data DIR keeps them"
		export = "WEIR_SERVER=" + page
	}
	if err := f.welcome(c, fact{"page", page}, fact{"Redis", life}, f.runs()); err != nil {
		return err
	}
	before, after := "", "weir: page and HTTP API at "+page+"\n"
	if term.IsTerminal(c.ErrOrStderr()) {
		before, after = "Try in another terminal:\n", tryNext
	}
	_, err := io.WriteString(c.ErrOrStderr(), before)
	_, err2 := fmt.Fprintf(c.OutOrStdout(), "export %s\n", export)
	_, err3 := io.WriteString(c.ErrOrStderr(), after)
	return errors.Join(err, err2, err3)
}

// tryNext is what a user of weir dev may type in another terminal.
const tryNext = `weir init first
weir run first/words.yaml --in lines=@first/words.txt --text
weir top

`

// allInOne runs jobs and serves the page and the API beside, until the program is told to stop. ready is told the address before.
func (f *workerFlags) allInOne(c *cobra.Command, s *settings, web *apiFlags, store *redisstore.Store, ready func(page string) error) error {
	m := newMetrics(store)
	hooks, flush, err := hooksOf(c, store, m)
	if err != nil {
		return err
	}
	defer flush()
	engine, stop, err := f.engine(c, store, hooks)
	if err != nil {
		return err
	}
	defer stop()
	l, err := web.listen(c, true)
	if err != nil {
		return err
	}
	at := web.placeOf(c, l)
	defer at.Close()
	handler, err := web.server(c, s, store, f.workers(), hooks)
	if err != nil {
		return err
	}
	if err := ready(fmt.Sprintf("%s://%s", web.scheme(), l.Addr())); err != nil {
		return err
	}
	err = f.handlers.beside(c, store, f.http(), func() error { return web.beside(c, store, at, handler, engine, m) }, m)
	if died := context.Cause(c.Context()); errors.Is(died, ownredis.ErrDied) {
		return died // which is why the rest went wrong
	}
	return err
}

// demoFlags are those of weir demo.
type demoFlags struct {
	workerFlags
	web         apiFlags
	data        string
	fresh, open bool
}

func newDemo(s *settings) *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a lively sample, with everything that it needs, and say what to try with it",
		Long: `Run a shop that uses most of what there is, on a Redis of its own, and serve the page that
shows it: orders come in bursts and fill bounded edges, each payment is a spawned job that is
perhaps tried again, broken orders become dead letters, large ones wait for approval, a
trigger launches a job now and then, a job is rate limited, and two are in a subgraph.

Its data stay in a directory: whatever ends the program, kill -9 too, weir demo goes on where
it was. --fresh begins anew. Where there is no redis-server the state is in this process
and ends with it.`,
		Example: "  weir demo\n  weir demo --fresh --open",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c, s) },
	}
	all := &cobra.Command{} // of the flags of weir dev some few are for this one: the others keep their defaults
	f.add(s, all)
	f.web.add(all)
	c.Flags().StringVar(&f.web.addr, "addr", defaultAddr, "`ADDRESS` of the page and the HTTP API; port 0 picks a free one")
	c.Flags().StringVar(&f.data, "data", "", "`DIR`ectory for the data (default weir/demo in the cache directory of the user)")
	c.Flags().BoolVar(&f.fresh, "fresh", false, "remove what an earlier demo has left, and begin anew")
	c.Flags().BoolVar(&f.open, "open", false, "open the page in a browser")
	return c
}

func (f *demoFlags) run(c *cobra.Command, s *settings) error {
	if s.redis != "" || s.server != "" {
		return usageError{errors.New("weir demo has a Redis of its own: leave --redis and --server away")}
	}
	if err := f.web.check(); err != nil {
		return err
	}
	if c.Flags().Changed("data") && f.data == "" {
		return usageError{errors.New("--data is empty: give a directory, or leave the flag away for the usual one")}
	}
	if f.data == "" {
		var err error
		if f.data, err = demo.Dir(); err != nil {
			return usageError{fmt.Errorf("say where the data are to be with --data: %w", err)}
		}
	}
	cfg := redisstore.Config{Embedded: embedded.Start, Namespace: s.namespace}
	url, stop, err := ownRedis(c, f.data, f.fresh)
	kept := err == nil
	switch {
	case kept:
		defer stop()
		cfg.URL = url
	case !errors.Is(err, ownredis.ErrNoServer):
		return err
	}
	store, err := redisstore.Open(c.Context(), cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	ran, err := demo.Start(c.Context(), client.New(store))
	if err != nil {
		return err
	}
	f.concurrency, f.queues, f.more = demo.Concurrency, demo.Queues(), demo.Workers()
	return f.allInOne(c, s, &f.web, store, func(page string) error {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s", page, demo.Guide(page, f.data, kept, ran, os.Getpid()))
		if f.open {
			err = errors.Join(err, browse(page))
		}
		return err
	})
}

// browse opens a page in the browser of the desktop.
func browse(page string) error {
	program, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	if err := exec.Command(program, args...).Start(); err != nil { //nolint:gosec,noctx // it outlives this program
		return fmt.Errorf("--open: %w; open %s yourself", err, page)
	}
	return nil
}
