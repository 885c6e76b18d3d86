package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// secretPrefix is what variables of the environment begin with that handlers may have as secrets.
const secretPrefix = "WEIR_SECRET_"

// handlerService says how handlers are run.
type handlerService struct {
	on, off   bool // on: asked for by a flag; off: not run where they are by default
	processes int
	network   bool
	secrets   string
	commands  []string
	changed   func(flag string) bool
	none      bool // the program has no engine
}

// add adds its flags; asked tells that handlers run only if --handlers says so.
func (f *handlerService) add(c *cobra.Command, asked bool) {
	flags := c.Flags()
	f.changed = flags.Changed
	if asked {
		flags.BoolVar(&f.on, "handlers", false, "run the jobs of handlers, too: scripts that weir handler set has stored")
	} else {
		f.on = true
		flags.BoolVar(&f.off, "no-handlers", false, "do not run the jobs of handlers here: scripts that weir handler set has stored")
	}
	flags.IntVar(&f.processes, "handler-processes", 0, "processes of handlers that run at a time, at `MOST` (default twice the number of CPUs, at least 4)")
	flags.BoolVar(&f.network, "handler-network", false, "let handlers use the network that ask for it")
	flags.StringVar(&f.secrets, "handler-secrets", "", "`DIR`ectory with a file for each secret of handlers, besides variables of the environment that begin with "+secretPrefix)
	flags.StringArrayVar(&f.commands, "handler-command", nil, "language for handlers, `x-NAME=PROGRAM ARGS`: the code is added as the last argument")
}

// check refuses what no handler could use.
func (f *handlerService) check() error {
	for _, flag := range []string{"handler-processes", "handler-network", "handler-secrets", "handler-command"} {
		switch {
		case !f.changed(flag) || f.on && !f.off && !f.none:
		case f.none:
			return usageError{fmt.Errorf("--%s says how handlers are run, and --no-engine that nothing is: leave one out", flag)}
		case f.off:
			return usageError{fmt.Errorf("--%s says how handlers are run, and --no-handlers that none are: leave one out", flag)}
		default:
			return usageError{fmt.Errorf("--%s says how handlers are run: give --handlers, too, to run them", flag)}
		}
	}
	if f.changed("handler-processes") && f.processes < 1 {
		return usageError{fmt.Errorf("--handler-processes %d: use at least 1, or leave it out for twice the number of CPUs", f.processes)}
	}
	if f.secrets != "" {
		if info, err := os.Stat(f.secrets); err != nil {
			return usageError{fmt.Errorf("--handler-secrets %s: %w", f.secrets, err)}
		} else if !info.IsDir() {
			return usageError{fmt.Errorf("--handler-secrets %s: it is a file: give a directory with a file for each secret", f.secrets)}
		}
	}
	for _, text := range f.commands {
		name, command, ok := strings.Cut(text, "=")
		words := strings.Fields(command)
		if !ok || len(words) == 0 || !strings.HasPrefix(name, "x-") {
			return usageError{fmt.Errorf("--handler-command %q: write it as x-NAME=PROGRAM ARGS, like x-ruby='ruby -e'", text)}
		}
		if _, err := exec.LookPath(words[0]); err != nil {
			return usageError{fmt.Errorf("--handler-command %q: %w", text, err)}
		}
	}
	return nil
}

// service makes what runs handlers; nil if they are not run here. The caller must close the pool when it has ended.
func (f *handlerService) service(c *cobra.Command, store *redisstore.Store, http component.HTTPPolicy, hooks ...worker.Hooks) (s *runner.Service, pool *runner.Pool, err error) {
	if !f.on || f.off {
		return nil, nil, nil
	}
	log := logger(c.ErrOrStderr())
	cfg := runner.Config{Processes: f.processes, Network: f.network, HTTP: http, Secret: f.secret, Logger: log, Commands: map[string][]string{}}
	for _, text := range f.commands {
		name, command, _ := strings.Cut(text, "=")
		cfg.Commands[name] = strings.Fields(command)
	}
	if pool, err = runner.New(cfg); err != nil {
		return nil, nil, err
	}
	s, err = runner.NewService(runner.ServiceConfig{Store: store, Pool: pool, Engine: worker.Config{Logger: log, Hooks: hooks}})
	return s, pool, err
}

// secret looks a secret up: in the environment, or in the directory.
func (f *handlerService) secret(name string) (string, bool) {
	if value, ok := os.LookupEnv(secretPrefix + name); ok {
		return value, true
	}
	if f.secrets == "" {
		return "", false
	}
	raw, err := os.ReadFile(filepath.Join(f.secrets, filepath.Base(name)))
	return strings.TrimRight(string(raw), "\r\n"), err == nil
}

// beside runs handlers for as long as fn runs, if they are to run here.
func (f *handlerService) beside(c *cobra.Command, store *redisstore.Store, http component.HTTPPolicy, fn func() error, hooks ...worker.Hooks) (err error) {
	service, pool, err := f.service(c, store, http, hooks...)
	if err != nil {
		return err
	}
	if service == nil {
		return fn()
	}
	if !term.IsTerminal(c.ErrOrStderr()) { // else the welcome has said what is served
		if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: serving handlers on %s\n", store.Where()); err != nil {
			return errors.Join(err, pool.Close())
		}
	}
	ctx, stop := context.WithCancelCause(c.Context())
	c.SetContext(ctx) // if one of them ends, the other one is stopped
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = service.Run(ctx)
		stop(failed)
	}()
	err = fn()
	stop(nil)
	<-ended
	return errors.Join(err, failed, pool.Close())
}
