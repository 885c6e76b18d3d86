package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

const (
	maxWidth  = 10_000
	maxWidths = 8
	maxDrawn  = 60 // jobs of a tree that is drawn
)

// usageError is the user's to correct before anything is started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// options are what the command line says.
type options struct {
	redis, tree, output string
	named               bool // tree was made up here
	widths              []int
	folder, out         string
}

const help = `Make an album of the pictures (GIF, JPEG, PNG) of a folder: JPEG thumbnails of several
widths, index.html and index.json, in the folder OUT.

Each picture is a graph of durable jobs of its own. One that cannot be read is told of,
stops no other, and makes the exit code 1. With --redis and --tree, the same command
continues an album that was interrupted, however it ended. All processes that share a
Redis must see the same files.`

// Main runs the program and returns its exit code. When ctx ends it stops gracefully.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	cmd := &cobra.Command{
		Use:               "album [flags] FOLDER OUT",
		Long:              help,
		Example:           "  album ~/pictures/2026 /tmp/album\n  album --redis redis://localhost:6379 --tree album-2026 --widths 160,1600 ~/pictures/2026 /srv/www/2026",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), stdout)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.redis, "redis", "", "`URL` of the Redis that keeps the jobs (default: $WEIR_REDIS_URL, else one in this process)")
	flags.StringVar(&o.tree, "tree", "", "`NAME` of the album, to continue it under; needs a Redis (default: a new one)")
	flags.IntSliceVar(&o.widths, "widths", []int{160, 640}, "`WIDTHS` of the thumbnails in pixels, separated by commas")
	flags.StringVarP(&o.output, "output", "o", "table", "`FORMAT` of the result: table or json")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see album --help", err) })
	cmd.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)

	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(usageError)) || errors.Is(err, job.ErrName):
		fmt.Fprintln(stderr, "album: "+oneLine(err))
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "album: stopped; "+o.howToContinue())
	default:
		fmt.Fprintln(stderr, "album: "+oneLine(err))
	}
	return exitError
}

func oneLine(err error) string { return term.Clean(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// howToContinue says what to do after an album that was not finished.
func (o *options) howToContinue() string {
	switch {
	case o.redis == "":
		return "no job was kept; an album that can be continued needs --redis URL"
	case o.named:
		return "to continue, add --tree " + o.tree
	default:
		return "the same command continues it"
	}
}

// check refuses what cannot work.
func (o *options) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case o.output != "table" && o.output != "json":
		return usagef("--output %q is not known; use table or json", o.output)
	case len(o.widths) == 0 || len(o.widths) > maxWidths:
		return usagef("--widths has %d widths; give 1 to %d", len(o.widths), maxWidths)
	case slices.Min(o.widths) < 1 || slices.Max(o.widths) > maxWidth:
		return usagef("--widths %v: use 1 to %d", o.widths, maxWidth)
	case len(args) != 2:
		return usagef("give a FOLDER of pictures and where the album goes, as in: album ~/pictures /tmp/album")
	}
	slices.Sort(o.widths)
	if o.widths = slices.Compact(o.widths); !cmd.Flags().Changed("redis") {
		o.redis = os.Getenv("WEIR_REDIS_URL")
	}
	if o.redis == "" && o.tree != "" {
		return usagef("--tree needs a Redis that outlives the program: give --redis URL or set WEIR_REDIS_URL")
	}
	if o.redis != "" && o.tree == "" {
		o.tree, o.named = "album-"+strings.ToLower(rand.Text()[:10]), true
	}
	return o.checkFolders(args[0], args[1])
}

// checkFolders looks at where the pictures are, and makes the folder that the album goes to.
func (o *options) checkFolders(folder, out string) (err error) {
	if o.folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	if o.out, err = filepath.Abs(out); err != nil {
		return err
	}
	info, err := os.Stat(o.folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usagef("%s does not exist; check the path", folder)
	case err != nil:
		return usageError{err}
	case !info.IsDir():
		return usagef("%s is not a folder; give the folder of the pictures", folder)
	case o.folder == o.out:
		return usagef("the album cannot go into the folder of its pictures; give another OUT")
	case !utf8.ValidString(o.folder + o.out):
		return usagef("the name %q is not UTF-8; link the folder under another name", o.folder+" "+o.out)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return usageError{err}
	}
	return nil
}

// run makes the album, and writes what came of it.
func (o *options) run(ctx context.Context, stdout io.Writer) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis})
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := o.start(ctx, job.NewClient(store))
	if err != nil {
		return err
	}
	s, err := finish(ctx, store, h)
	if err != nil {
		return err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	if err := o.write(stdout, s, tree); err != nil {
		return err
	}
	if len(s.Broken) > 0 {
		return fmt.Errorf("%d of %d pictures are not in the album, such as %s: %s",
			len(s.Broken), len(s.Broken)+s.Pictures, s.Broken[0].File, s.Broken[0].Error)
	}
	return nil
}

// write writes the result in the format asked for.
func (o *options) write(w io.Writer, s Summary, tree []*job.Info) error {
	page := filepath.Join(o.out, pageName)
	if o.output == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Summary
			Page string `json:"page"`
		}{s, page})
	}
	style := term.StyleOf(w)
	var out strings.Builder
	fmt.Fprintf(&out, "%s pictures in %s\n", style.Bold(term.Number(int64(s.Pictures))), page)
	for _, b := range s.Broken {
		fmt.Fprintf(&out, "%s: %s\n", term.Clean(b.File), term.Clean(b.Error))
	}
	fmt.Fprintln(&out)
	if err := term.Tree(&out, tree[:min(len(tree), maxDrawn)], style); err != nil {
		return err
	}
	if more := len(tree) - maxDrawn; more > 0 {
		fmt.Fprintf(&out, "and %s jobs more\n", term.Number(int64(more)))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
