package component

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of Exec's parameters input and output.
const (
	AsJSON  = "json"  // the JSON as it is
	AsText  = "text"  // a text; other values as JSON
	AsLines = "lines" // of output: a text for each line, a message each
)

// Exec runs a program for each message, with the message at its standard input, and writes
// what it prints. There is no shell. The Policy names the programs that may be run; by
// default that is none.
//
// A program that ends with another code than 0, prints more than 1 MiB, or does not end in
// time is an error of the message. On systems that have process groups all that it started
// is killed with it, when the time is over and when the run ends. Its environment has PATH,
// HOME, LANG and what env says, and WEIR_IDEMPOTENCY_KEY, which is the same if a process
// died and the message is worked on again. It runs in Policy.Root. An engine that may not run the program, or does not have it,
// leaves the job to another one that lives and has another policy; if there is none the job fails.
//
// Messages are worked on one after the other, and each is committed before the next. Order
// is kept, and the end of in is the end of out.
type Exec struct {
	acting
	// Program is one that the policy names. Required.
	Program string `json:"program,omitempty" doc:"program to run, as the engine's policy names it"`
	// Args are its arguments.
	Args []string `json:"args,omitempty" doc:"arguments of the program"`
	// Env is added to its environment.
	Env map[string]string `json:"env,omitempty" doc:"added to the program's environment"`
	// Input is how it gets the message.
	Input string `json:"input,omitempty" doc:"json (default) or text: how the program gets the message"`
	// Output is how what it prints is read.
	Output string `json:"output,omitempty" doc:"text (default), json or lines: what is made of what the program prints"`
	// Timeout is for one message. Zero means DefaultTimeout.
	Timeout Duration `json:"timeout,omitempty" doc:"time for one message, default 30s"`
	// OnError is what becomes of messages that fail.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`

	policy execPolicy
}

// execPolicy is what a Policy says about programs.
type execPolicy struct {
	programs []string
	root     string
}

// JobType implements job.TypeNamer.
func (*Exec) JobType() string { return "exec" }

// Describe implements Component.
func (*Exec) Describe() string { return "runs a program for each message, if the policy allows it" }

// Settings implements worker.Local.
func (x *Exec) Settings() string { return fmt.Sprintf("%q %q", x.policy.programs, x.policy.root) }

// Validate implements Component.
func (x *Exec) Validate() error {
	var c check
	c.is(x.Program != "", "program is missing")
	c.oneOf("input", x.Input, AsJSON, AsText)
	c.oneOf("output", x.Output, AsText, AsJSON, AsLines)
	c.span("timeout", x.Timeout)
	c.onError(x.OnError)
	for name := range x.Env {
		c.is(name != "" && !strings.ContainsAny(name, "=\x00"), "env: %q cannot be the name of a variable", name)
	}
	return c.err(x)
}

// Run implements worker.Worker.
func (x *Exec) Run(ctx context.Context, run *worker.Run) error {
	if err := x.Validate(); err != nil {
		return err
	}
	if !slices.Contains(x.policy.programs, x.Program) {
		return worker.Elsewhere(fmt.Errorf("%w: program %q is not one of those that may be run here", ErrForbidden, x.Program))
	}
	path, err := exec.LookPath(x.Program)
	if err != nil {
		return worker.Elsewhere(err)
	}
	return effects(ctx, run, x.In, func(raw json.RawMessage) error {
		items, err := x.call(ctx, path, run.IdempotencyKey("exec"), raw)
		for _, item := range items {
			if err == nil {
				err = x.Out.Write(item)
			}
		}
		return reject(ctx, x.OnError, x.Err, raw, err)
	})
}

// call runs the program for one message and returns what it printed as messages.
func (x *Exec) call(ctx context.Context, path, key string, raw json.RawMessage) ([]json.RawMessage, error) {
	input := raw
	if x.Input == AsText && raw[0] == '"' {
		var text string
		if err := port.Decode(raw, &text); err != nil {
			return nil, fault(err)
		}
		input = json.RawMessage(text)
	}
	ctx, cancel := timeout(ctx, time.Duration(x.Timeout), DefaultTimeout)
	defer cancel()
	stdout, stderr := &capped{most: worker.MaxMessage}, &capped{most: 2 << 10, quiet: true}
	cmd := exec.CommandContext(ctx, path, x.Args...)
	cmd.Dir, cmd.Env = x.policy.root, x.environ(key)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	cmd.WaitDelay = time.Second
	own(cmd)
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if stdout.over {
		err = fmt.Errorf("it printed more than %d bytes", stdout.most)
	}
	if err != nil {
		text := strings.TrimSpace(strings.ToValidUTF8(string(stderr.text), "\uFFFD"))
		if text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return nil, fault(fmt.Errorf("%s: %w", x.Program, err))
	}
	items, err := x.output(stdout.text)
	return items, fault(err)
}

// environ is the environment of the program: not that of the engine, which has secrets.
func (x *Exec) environ(key string) []string {
	env := []string{"WEIR_IDEMPOTENCY_KEY=" + key}
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range x.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// output makes messages of what the program printed.
func (x *Exec) output(text []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("what it printed is not valid UTF-8")
	}
	if x.Output == AsJSON {
		raw, err := port.Encode(json.RawMessage(text))
		return []json.RawMessage{raw}, err
	}
	parts := []string{string(text)}
	if x.Output == AsLines {
		parts = strings.SplitAfter(string(text), "\n")
	}
	var items []json.RawMessage
	for _, part := range parts {
		if x.Output == AsLines {
			if part == "" {
				continue // behind the last newline
			}
			part = strings.TrimSuffix(strings.TrimSuffix(part, "\n"), "\r")
		}
		raw, err := port.Encode(part)
		if err == nil {
			err = checkSize(raw)
		}
		if err != nil {
			return nil, err
		}
		items = append(items, raw)
	}
	return items, nil
}

// capped keeps the first bytes that are written to it.
type capped struct {
	text  []byte
	most  int
	quiet bool // more is left out, rather than an error
	over  bool
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.most-len(c.text))
	c.text = append(c.text, p[:n]...)
	if n == len(p) || c.quiet {
		return len(p), nil
	}
	c.over = true
	return n, io.ErrShortWrite
}
