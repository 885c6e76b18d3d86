// Command functions runs a graph of three handlers in two languages: each line of standard input, or of its arguments, becomes its words (node),
// how often each is there (Python), and which is there most often (node).
package main

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

//go:embed functions.yaml handlers
var files embed.FS

// languages are those of files.
var languages = map[string]string{".js": handler.Node, ".py": handler.Python}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	in := io.Reader(os.Stdin)
	if len(os.Args) > 1 {
		in = strings.NewReader(strings.Join(os.Args[1:], "\n"))
	}
	err := run(ctx, os.Getenv("WEIR_REDIS_URL"), in, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "functions:", err)
		os.Exit(1)
	}
}

// run stores the handlers, starts the graph, and prints what comes of each line. Without a URL the jobs live in this process.
func run(ctx context.Context, url string, in io.Reader, out io.Writer) (err error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	types, err := setHandlers(ctx, store)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	pool, err := runner.New(runner.Config{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	service, err := runner.NewService(runner.ServiceConfig{Store: store, Pool: pool, Engine: worker.Config{Logger: log}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	return feed(ctx, client.New(store), types, in, out)
}

// setHandlers stores the handlers, and returns their types for the graph.
func setHandlers(ctx context.Context, store *redisstore.Store) (types []any, err error) {
	all, err := files.ReadDir("handlers")
	if err != nil {
		return nil, err
	}
	for _, file := range all {
		code, err := files.ReadFile("handlers/" + file.Name())
		if err != nil {
			return nil, err
		}
		ext := path.Ext(file.Name())
		name := strings.TrimSuffix(file.Name(), ext)
		if _, err := handler.Set(ctx, store, name, handler.Definition{Lang: languages[ext], Body: string(code)}); err != nil {
			return nil, err
		}
		info, err := store.Type(ctx, job.DefaultQueue, name)
		if err != nil {
			return nil, err
		}
		w, err := job.NewRegistered(info, nil)
		if err != nil {
			return nil, err
		}
		types = append(types, w)
	}
	return types, nil
}

// feed sends lines to the graph, and prints what it writes.
func feed(ctx context.Context, client *client.Client, types []any, in io.Reader, out io.Writer) error {
	text, err := files.ReadFile("functions.yaml")
	if err != nil {
		return err
	}
	file, err := graphfile.ParseYAML("functions.yaml", text)
	if err != nil {
		return err
	}
	graph, err := file.Build(types, nil)
	if err != nil {
		return err
	}
	top, err := client.Start(ctx, graph)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := top.Write(ctx, "line", lines.Text()); err != nil {
			return err
		}
	}
	if err := top.Close(ctx, "line"); err != nil {
		return err
	}
	if _, err := top.Wait(ctx); err != nil {
		return err
	}
	for _, name := range []string{"top", "rejected"} {
		for {
			var message json.RawMessage
			ok, err := top.Read(ctx, name, &message)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if _, err := fmt.Fprintf(out, "%s: %s\n", name, message); err != nil {
				return err
			}
		}
	}
	return nil
}
