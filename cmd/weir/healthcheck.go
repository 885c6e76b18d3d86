package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
)

// Health of a process.
const (
	ownServer    = "http://127.0.0.1:8080" // where weir serve listens unless it is told otherwise
	healthShown  = 500                     // bytes of an answer
	healthLonger = 5 * time.Second
)

// healthView is what a process says of itself.
type healthView struct {
	URL   string `json:"url"`
	Ready bool   `json:"ready"`
	Text  string `json:"text"` // ok, or why it is not
}

func newHealthcheck(s *settings) *cobra.Command {
	var alive bool
	timeout := healthLonger
	c := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a server or a worker whether it is ready",
		Long: `Ask the process at URL, which weir serve, or weir worker --listen, runs, whether it is
ready: Redis is reached and its engine takes jobs. Without URL it is the server
that other commands use, else ` + ownServer + `.
Exit code 0 says that it is, 1 that it is not, and why, 7 that nothing answers. It is for
images and compose files: there is no shell or curl in an image of weir alone.

--alive asks whether the process answers at all, whatever Redis does: restart it if not.`,
		Example: "  weir healthcheck\n  weir healthcheck http://127.0.0.1:9090 --alive",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := s.resolve()
			if err != nil {
				return err
			}
			at := cmp.Or(strings.Join(args, ""), e.server.Value, ownServer)
			u, err := url.Parse(at)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return usageError{fmt.Errorf("%q is not a URL of a server: use one like %s", term.Clean(at), ownServer)}
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			path := "readyz"
			if alive {
				path = "healthz"
			}
			v, err := healthOf(ctx, u.JoinPath(path).String())
			if err != nil {
				return err
			}
			if !v.Ready {
				return fmt.Errorf("%s: %s", v.URL, v.Text)
			}
			return s.show(c, v, "", func(w io.Writer) error {
				_, err := fmt.Fprintln(w, v.Text)
				return err
			})
		},
	}
	c.Flags().BoolVar(&alive, "alive", false, "ask whether it answers at all")
	spanVar(c.Flags(), &timeout, "timeout", healthLonger, "wait so long for an answer")
	s.formats(c, "table", "json", "yaml")
	return c
}

// healthOf asks a process.
func healthOf(ctx context.Context, at string) (healthView, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return healthView{}, err
	}
	away := func(err error) error {
		return &storecall.Refusal{Text: fmt.Sprintf("nothing answers at %s: %v", at, err), Wraps: []string{"unreachable"}}
	}
	r, err := http.DefaultClient.Do(q)
	if failed := new(url.Error); errors.As(err, &failed) {
		return healthView{}, away(failed.Err)
	} else if err != nil {
		return healthView{}, away(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(r.Body, healthShown))
	if err != nil {
		return healthView{}, away(err)
	}
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
		return healthView{}, fmt.Errorf("%s answers %s: it is not of weir serve or weir worker --listen", at, r.Status)
	}
	return healthView{URL: at, Ready: r.StatusCode == http.StatusOK, Text: strings.TrimSpace(string(raw))}, nil
}
