package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

// outputs are the values of -o of commands that show one thing.
var outputs = []string{"table", "json", "yaml", "name"}

// show prints one thing in the format that the user wants; table prints it for people.
func (s *settings) show(c *cobra.Command, v any, name string, table func(w io.Writer) error) error {
	w := c.OutOrStdout()
	switch s.output {
	case "json":
		return encode(w, v, "  ")
	case "jsonl":
		return encode(w, v, "")
	case "yaml":
		raw, err := json.Marshal(v)
		if err == nil {
			raw, err = yaml.JSONToYAML(raw)
		}
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	case "name":
		_, err := io.WriteString(w, name+"\n")
		return err
	}
	return table(term.Plain(w))
}

// encode writes a value as JSON: in one line without indent.
func encode(w io.Writer, v any, indent string) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	raw := text.Bytes()
	if indent != "" {
		raw = term.Spread(raw, indent)
	}
	_, err := w.Write(raw)
	return err
}

// formats adds -o with the formats that a command knows, the first being the default.
func (s *settings) formats(c *cobra.Command, known ...string) {
	var output string
	c.Flags().StringVarP(&output, "output", "o", known[0], joined(known))
	oneOfWords(c, "output", known)
	c.PreRunE = func(*cobra.Command, []string) error {
		s.output = output
		return oneOf("output", output, known)
	}
}

// with opens the store, finds a job, and calls fn with it.
func (s *settings) with(c *cobra.Command, name string, fn func(ctx context.Context, client *client.Client, h *client.Handle) error) error {
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		client := client.New(store)
		h, err := find(ctx, client, name)
		if err != nil {
			return err
		}
		return withNames(fn(ctx, client, h), typed(h.ID(), name))
	})
}

// connected opens the store, beside Redis or behind a server, and calls fn with it.
func (s *settings) connected(c *cobra.Command, fn func(ctx context.Context, store storecall.Store) error) error {
	store, err := s.reach(c.Context())
	if err != nil {
		return err
	}
	defer store.Close()
	return fn(c.Context(), store)
}

// besideRedis is connected for what no server does for others.
func (s *settings) besideRedis(c *cobra.Command, fn func(ctx context.Context, store *redisstore.Store) error) error {
	store, err := s.open(c.Context())
	if err != nil {
		return err
	}
	defer store.Close()
	return fn(c.Context(), store)
}
