package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

// watchEvery is how often --watch counts anew.
const watchEvery = 2 * time.Second

// statsView is what weir stats prints as JSON.
type statsView struct {
	api.Stats
	Redis   string       `json:"redis"` // without password
	Servers []serverView `json:"servers"`
}

type serverView struct {
	redisstore.ServerStats
	UptimeSeconds int64 `json:"uptime_seconds"`
}

func newStats(s *settings) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count what a namespace and its Redis have, on one page",
		Long: `Count what a namespace and its Redis have, on one page. Nothing is scanned: it costs the
same however many jobs there are, and what nobody counts, such as suspended jobs, is not on
it (weir jobs --status suspended --count looks through all jobs without parent).
With --watch the page is drawn anew every two seconds until Ctrl-C.`,
		Example: "  weir stats\n  weir stats --watch\n  weir stats --watch -o jsonl >> stats.jsonl",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				page := statsPage{command: c, settings: s, store: store}
				if watch {
					return page.watch(ctx)
				}
				return page.print(ctx)
			})
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "again every two seconds")
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

// statsPage prints the counters of a store.
type statsPage struct {
	command  *cobra.Command
	settings *settings
	store    storecall.Store
	live     *term.Live // redraws the page, unless nil
}

func (p *statsPage) watch(ctx context.Context) error {
	w := p.command.OutOrStdout()
	if p.settings.output == "table" && term.IsTerminal(w) {
		p.live = term.NewLive(w)
	}
	for {
		err := p.print(ctx)
		if err == nil {
			err = pause(ctx, watchEvery)
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // the user has seen enough
		}
		if err != nil {
			return err
		}
		if p.live == nil && p.settings.output == "table" {
			fmt.Fprintln(w)
		}
	}
}

func (p *statsPage) print(ctx context.Context) error {
	st, err := p.store.Stats(ctx)
	if err != nil {
		return err
	}
	v := statsOf(st, p.store.Where())
	return p.settings.show(p.command, v, "", func(w io.Writer) error {
		style := term.StyleOf(w)
		if p.live == nil {
			return drawStats(w, v, style)
		}
		var page bytes.Buffer
		err := drawStats(&page, v, style)
		p.live.Draw(style, strings.Split(strings.TrimSuffix(page.String(), "\n"), "\n")...)
		return err
	})
}

func statsOf(st *redisstore.Stats, where string) *statsView {
	v := &statsView{Stats: api.StatsOf(st), Redis: where}
	for _, one := range st.Servers {
		if one.DiskError == nil {
			one.DiskError = []string{}
		}
		v.Servers = append(v.Servers, serverView{one, int64(one.Uptime.Seconds())})
	}
	return v
}

// drawStats draws the page for people.
func drawStats(w io.Writer, v *statsView, style term.Style) error {
	slots := 0
	for _, e := range v.Engines {
		slots += e.Concurrency
	}
	queues := []string{}
	for _, q := range v.Queues {
		text := term.Clean(q.Queue) + " " + count(q.Pending)
		if q.Paused {
			text += " (paused)"
		}
		queues = append(queues, text)
	}
	rows := [][]string{
		{"NAMESPACE", fmt.Sprintf("%s, %d shards, at %s", v.Namespace, v.Shards, v.Redis)},
		{"jobs", fmt.Sprintf("%s without parent, %s aliases; %s failed", term.Number(v.Roots), term.Number(v.Aliases), term.Number(v.Failed))},
		{"retention", fmt.Sprintf("%s settled and are removed later, %s kept as nobody has read their output, %s removed",
			term.Number(v.Retained), term.Number(v.Kept), term.Number(v.Removed))},
		{"due", fmt.Sprintf("%s to be looked at later, %s of them late", term.Number(v.Due), term.Number(v.Overdue))},
		{"left to do", fmt.Sprintf("%s orders between shards, %s chores", term.Number(v.Orders), term.Number(v.Chores))},
		{"engines", fmt.Sprintf("%d, with %d of %d runs in progress", len(v.Engines), v.Running, slots)},
		{"in line", orDash(strings.Join(queues, ", "))},
	}
	for _, one := range v.Servers {
		rows = append(rows, serverRows(style, one)...)
	}
	for i := 1; i < len(rows); i++ {
		rows[i][0] = style.Faint(rows[i][0])
	}
	return term.Table(w, rows, style)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func serverRows(style term.Style, v serverView) [][]string {
	memory := term.Bytes(v.Used) + ", no limit"
	if v.Max > 0 {
		memory = fmt.Sprintf("%s of %s, %.0f %%", term.Bytes(v.Used), term.Bytes(v.Max), 100*float64(v.Used)/float64(v.Max))
	}
	disk := "no append-only file"
	if v.AOF {
		disk = "append-only file"
	}
	if len(v.DiskError) > 0 {
		disk += ", FAILED: " + strings.Join(v.DiskError, ", ")
	}
	if !v.LastSave.IsZero() {
		disk += ", last snapshot or start " + style.Ago(v.LastSave)
	}
	role := term.Clean(orDash(v.Role))
	if v.Replicas > 0 {
		role += fmt.Sprintf(" of %d replicas", v.Replicas)
	}
	return [][]string{
		{"redis", fmt.Sprintf("%s, version %s, %s, up %s", v.Address, term.Clean(orDash(v.Version)), role, term.Style{}.Age(time.Now().Add(-v.Uptime)))},
		{"memory", memory},
		{"load", fmt.Sprintf("%s keys, %s commands/s, %s clients", term.Number(v.Keys), term.Number(v.Commands), term.Number(v.Clients))},
		{"disk", disk},
	}
}
