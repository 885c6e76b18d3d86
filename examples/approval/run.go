package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// The policy unless the command line says otherwise.
const (
	defaultSmall  = Cents(50_00)
	defaultLarge  = Cents(1000_00)
	defaultRemind = 24 * time.Hour
	defaultExpire = 14 * 24 * time.Hour
	leastTimer    = 10 * time.Millisecond
)

// usageError is the user's to correct.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// settings are what all commands need.
type settings struct {
	redis, output string
	stdout        io.Writer
}

const help = `File requests to spend money, and decide on them.

A request of a small amount is approved at once, one above a larger amount needs two
people. Whoever is asked sees so where "approval work" runs, and is reminded; a request
that nobody decides expires. All of it is kept in Redis: processes may come and go.

Other programs decide by writing {"by": "Grace", "yes": true} to the port decisions of
the request's job, whose ID "approval list -o json" tells.`

// Main runs the program and returns its exit code. When ctx ends it stops.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newRoot(stdout)
	cmd.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitError
	if errors.As(err, new(usageError)) {
		code = exitUsage
	} else if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	fmt.Fprintln(stderr, "approval: "+term.Clean(strings.ReplaceAll(err.Error(), "\n", "; ")))
	return code
}

func newRoot(stdout io.Writer) *cobra.Command {
	s := &settings{stdout: stdout}
	var demo bool
	root := &cobra.Command{
		Use:   "approval",
		Long:  help,
		Short: "File requests to spend money, and decide on them",
		Example: "  approval --demo\n" +
			"  approval work --redis redis://localhost:6379 &\n" +
			"  approval request --redis redis://localhost:6379 --by Ada 900 a chair\n" +
			"  approval decide --redis redis://localhost:6379 --as Grace 1 yes",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return s.check(cmd, demo) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if !demo || len(args) > 0 {
				return usagef("say what to do: request, list, decide, work, or --demo; see approval --help")
			}
			return s.demo(cmd.Context())
		},
	}
	root.PersistentFlags().StringVar(&s.redis, "redis", "", "`URL` of the Redis that keeps the requests (default: $WEIR_REDIS_URL)")
	root.PersistentFlags().StringVarP(&s.output, "output", "o", "table", "`FORMAT` of results: table or json")
	root.Flags().BoolVar(&demo, "demo", false, "play a story, in this process and in some seconds")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see approval --help", err) })
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.AddCommand(s.newRequest(), s.newList(), s.newDecide(), s.newWork())
	return root
}

// check refuses what cannot work.
func (s *settings) check(cmd *cobra.Command, demo bool) error {
	if s.output != "table" && s.output != "json" {
		return usagef("--output %q is not known; use table or json", s.output)
	}
	if !cmd.Flags().Changed("redis") {
		s.redis = os.Getenv("WEIR_REDIS_URL")
	}
	if cmd.HasParent() && !demo && s.redis == "" {
		return usagef("requests need a Redis that outlives the program: give --redis URL or set WEIR_REDIS_URL")
	}
	return nil
}

func (s *settings) newRequest() *cobra.Command {
	r := &Request{Policy: Policy{defaultSmall, defaultLarge, defaultRemind, defaultExpire}}
	c := &cobra.Command{
		Use:     "request [flags] AMOUNT PURPOSE...",
		Short:   "File a request",
		Example: "  approval request --by Ada 900 a chair",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) < 2 || r.By == "" {
				return usagef("say who asks for how much and what for, as in: approval request --by Ada 900 a chair")
			}
			if r.Amount, err = parseCents(args[0]); err != nil {
				return err
			}
			if r.Policy.Remind < leastTimer || r.Policy.Expire < leastTimer {
				return usagef("--remind and --expire are at least %s", leastTimer)
			}
			r.Purpose = strings.Join(args[1:], " ")
			return s.request(cmd.Context(), r)
		},
	}
	c.Flags().StringVar(&r.By, "by", "", "`NAME` of who asks")
	c.Flags().Var(&r.Policy.Small, "small", "up to this nobody is asked")
	c.Flags().Var(&r.Policy.Large, "large", "above this two people must agree")
	c.Flags().DurationVar(&r.Policy.Remind, "remind", r.Policy.Remind, "remind people after this `TIME`, again and again")
	c.Flags().DurationVar(&r.Policy.Expire, "expire", r.Policy.Expire, "give the request up after this `TIME`")
	return c
}

func (s *settings) request(ctx context.Context, r *Request) error {
	d, err := openDesk(ctx, s.redis, nil)
	if err != nil {
		return err
	}
	defer d.close()
	name, err := d.file(ctx, r)
	if err != nil {
		return err
	}
	if s.output == "json" {
		_, err = fmt.Fprintf(s.stdout, "{\"id\":%q}\n", name)
	} else {
		_, err = fmt.Fprintf(s.stdout, "filed request %s\n", name)
	}
	return err
}

func (s *settings) newList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List all requests",
		Example: "  approval list -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := openDesk(cmd.Context(), s.redis, nil)
			if err != nil {
				return err
			}
			defer d.close()
			items, err := d.list(cmd.Context())
			if err != nil {
				return err
			}
			return writeList(s.stdout, items, s.output)
		},
	}
}

func (s *settings) newDecide() *cobra.Command {
	var v Decision
	c := &cobra.Command{
		Use:     "decide [flags] ID yes|no",
		Short:   "Decide on a request",
		Example: "  approval decide --as Grace 1 yes",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || args[1] != "yes" && args[1] != "no" || v.By == "" {
				return usagef("say who decides what on which request, as in: approval decide --as Grace 1 yes")
			}
			d, err := openDesk(cmd.Context(), s.redis, nil)
			if err != nil {
				return err
			}
			defer d.close()
			v.Yes = args[1] == "yes"
			if err := d.decide(cmd.Context(), args[0], v); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.stdout, "noted: %s says %s to request %s\n", term.Clean(v.By), args[1], term.Clean(args[0]))
			return err
		},
	}
	c.Flags().StringVar(&v.By, "as", "", "`NAME` of who decides")
	c.Flags().StringVar(&v.Note, "note", "", "`TEXT` to go with it")
	return c
}

func (s *settings) newWork() *cobra.Command {
	return &cobra.Command{
		Use:     "work",
		Short:   "Serve requests until told to stop",
		Example: "  approval work --redis redis://localhost:6379",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := &people{w: s.stdout}
			d, err := openDesk(cmd.Context(), s.redis, p)
			if err != nil {
				return err
			}
			defer d.close()
			p.tell("serving requests; stop with ctrl-c")
			return d.engine.Run(cmd.Context())
		},
	}
}

// usage makes errors of the number of arguments the user's.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%w; see approval --help", err)
		}
		return nil
	}
}
