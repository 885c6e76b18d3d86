package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func newHandler(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "handler",
		Short: "Give types of jobs code without Go: scripts, commands, URLs",
		Long: `Give types of jobs code without Go: a script in node, python or sh, a command, or a URL. weir serve,
weir dev and weir worker --handlers run it, in its newest version, in a sandbox. A handler has the
ports in, out and err, for graphs; a job of its type runs what is sent to in. docs/handlers.md
tells more.`,
		Example: "  weir handler set upper --body 'return payload.toUpperCase()'\n  weir handler list\n  job=$(weir create upper) && weir send $job in '\"hello\"'\n  weir state get $job result",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newHandlerSet(s), s.complete(newHandlerGet(s), handlerWords), newHandlerList(s), s.complete(newHandlerDelete(s), handlerWords))
	return c
}

// handlerWords are the types that have a handler.
func handlerWords(ctx context.Context, store storecall.Store, _ []string, _ string) ([]string, error) {
	all, err := handler.List(ctx, store)
	var words []string
	for _, h := range all {
		words = append(words, described(h.Type, h.Definition.Lang))
	}
	return words, err
}

// handlerFlags are the parts of a definition.
type handlerFlags struct {
	file, lang, body, bodyFile, before, beforeEach, afterEach, options string
	unchecked                                                          bool
}

func newHandlerSet(s *settings) *cobra.Command {
	var f handlerFlags
	c := &cobra.Command{
		Use:   "set TYPE",
		Short: "Store a new version of the handler of a type",
		Long: `Store a new version of the handler of a type, from flags, or with --file from JSON as the API
takes it, or as weir handler get prints it. Engines run it within a second. A --body-file that
ends in .js, .py or .sh says its language.`,
		Example: `  weir handler set upper --body 'return payload.toUpperCase()'
  weir handler set mail --body-file mail.py --options '{"secrets":["SMTP_PASSWORD"],"network":true}'
  weir handler set hook --lang http --body https://example.org/hook --options '{"batch":100}'
  weir handler set report --file report.json
  weir handler get report --version 3 | weir handler set report --file -`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := f.definition(c)
			if err != nil {
				return err
			}
			if err := runner.CheckCode(c.Context(), &d); err != nil && !f.unchecked {
				if f.lang+f.file == "" {
					err = fmt.Errorf("%w; it was read as %s: --lang says another language", err, d.Lang)
				}
				return fmt.Errorf("%w; if the program of its language is newer where handlers run, --unchecked stores it", err)
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				version, err := handler.Set(ctx, store, args[0], d)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "handler %s has version %d\n", args[0], version); err != nil {
					return err
				}
				return noteThen(ctx, c, store, args[0], d.Options.Then)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.file, "file", "", "`FILE` with the whole definition as JSON; - is standard input")
	flags.StringVar(&f.lang, "lang", "", "node (default), python, sh, http, or x-… that the operator has configured")
	flags.StringVar(&f.body, "body", "", "`CODE` to run for each payload; of http the URL")
	flags.StringVar(&f.bodyFile, "body-file", "", "`FILE` with that code")
	flags.StringVar(&f.before, "before", "", "`CODE` to run once in each process")
	flags.StringVar(&f.beforeEach, "before-each", "", "`CODE` to run before each batch")
	flags.StringVar(&f.afterEach, "after-each", "", "`CODE` to run behind each batch")
	flags.BoolVar(&f.unchecked, "unchecked", false, "store code that does not parse with the program of its language on this machine")
	flags.StringVar(&f.options, "options", "", "limits and retries, a `JSON` object as docs/handlers.md lists them")
	return c
}

// noteThen says if nothing runs the jobs yet that results of a handler go to, or if it itself does.
func noteThen(ctx context.Context, c *cobra.Command, store storecall.Store, own, typ string) error {
	switch typ {
	case "":
		return nil
	case own:
		_, err := fmt.Fprintf(c.ErrOrStderr(), "weir: options.then: each result of %s starts another job of %[1]s, without end\n", typ)
		return err
	}
	_, err := store.Type(ctx, job.DefaultQueue, typ)
	if errors.Is(err, job.ErrUnknownType) {
		_, err = fmt.Fprintf(c.ErrOrStderr(), "weir: options.then: nothing runs jobs of type %s yet: they wait until weir handler set gives it code\n", typ)
	}
	return err
}

// languageOf is that of files.
var languageOf = map[string]string{".js": handler.Node, ".py": handler.Python, ".sh": handler.Shell}

// definition is what the flags say.
func (f *handlerFlags) definition(c *cobra.Command) (d handler.Definition, err error) {
	if f.file != "" {
		if f.lang+f.body+f.bodyFile+f.before+f.beforeEach+f.afterEach+f.options != "" {
			return d, usageError{errors.New("--file has the whole definition: leave the other flags out")}
		}
		raw, err := readFileOr(c.InOrStdin(), f.file)
		if err != nil {
			return d, usageError{err}
		}
		return handler.ParseStored(raw)
	}
	if c.Flags().Changed("body") && f.body+f.bodyFile == "" {
		return d, usageError{errors.New("--body is empty: give the code, or the file that has it with --body-file")}
	}
	if (f.body == "") == (f.bodyFile == "") {
		return d, usageError{errors.New("give the code with --body or --body-file, one of them")}
	}
	if f.bodyFile != "" {
		raw, err := os.ReadFile(f.bodyFile)
		if err != nil {
			return d, usageError{err}
		}
		f.body = string(raw)
		if f.lang == "" {
			f.lang = languageOf[filepath.Ext(f.bodyFile)]
		}
	}
	if err := flagJSON("--options", cmp.Or(f.options, "{}")); err != nil {
		return d, usageError{err}
	}
	text, err := json.Marshal(map[string]any{
		"lang": cmp.Or(f.lang, handler.Node), "body": f.body, "before": f.before, "beforeEach": f.beforeEach, "afterEach": f.afterEach,
		"options": json.RawMessage(cmp.Or(f.options, "{}")),
	})
	if err != nil {
		return d, err
	}
	return handler.Parse(text)
}

// readFileOr reads a file, or what stands for - .
func readFileOr(in io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name) //nolint:gosec // of the command line
}

func newHandlerGet(s *settings) *cobra.Command {
	var version int64
	c := &cobra.Command{
		Use:     "get TYPE",
		Short:   "Show the handler of a type, as JSON",
		Example: "  weir handler get upper\n  weir handler get upper --version 3 -o yaml",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				h, err := handler.Get(ctx, store, args[0], version)
				if err != nil {
					return err
				}
				return s.show(c, h, h.Type, nil)
			})
		},
	}
	c.Flags().Int64Var(&version, "version", 0, "an older `VERSION`, of the last 20")
	s.formats(c, "json", "yaml")
	return c
}

func newHandlerList(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the handlers",
		Example: "  weir handler list -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				all, err := handler.List(ctx, store)
				if err != nil {
					return err
				}
				return s.show(c, append([]handler.Stored{}, all...), "", func(w io.Writer) error {
					if len(all) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no handlers: weir handler set makes one")
						return err
					}
					style := term.StyleOf(w)
					rows := [][]string{{"TYPE", "LANG", "VERSION", "AGE", "BODY"}}
					for _, h := range all {
						line, _, _ := strings.Cut(strings.TrimSpace(h.Definition.Body), "\n")
						rows = append(rows, []string{h.Type, h.Definition.Lang, strconv.FormatInt(h.Version, 10), style.Age(h.At), term.Clean(fmt.Sprintf("%.60s", line))})
					}
					return term.Table(w, rows, style)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

func newHandlerDelete(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "delete TYPE",
		Short:   "Delete the handler of a type: its jobs are tried again until there is another",
		Example: "  weir handler delete upper",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				if err := handler.Delete(ctx, store, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "handler %s is deleted\n", args[0])
				return err
			})
		},
	}
}
