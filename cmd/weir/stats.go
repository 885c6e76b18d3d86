package main

import (
	"context"
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
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count what a namespace and its Redis have, on one page",
		Long: `Count what a namespace and its Redis have, on one page. Nothing is scanned: it costs the
same however many jobs there are, and what nobody counts, such as suspended jobs, is not on
it (weir jobs --status suspended --count looks through all root jobs).
With --watch the page is drawn anew every two seconds.`,
		Example: "  weir stats\n  weir stats --watch\n  weir stats --watch -o jsonl >> stats.jsonl",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				st, err := store.Stats(ctx)
				if err != nil {
					return err
				}
				v := statsOf(st, store.Where())
				return s.show(c, v, "", func(w io.Writer) error { return drawStats(w, v, term.StyleOf(w)) })
			})
		},
	}
	s.formats(c, "table", "json", "jsonl", "yaml")
	s.watched(c)
	return c
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
		if q.Limited > 0 {
			text += " and " + count(q.Limited) + " that wait for a limit"
		}
		if q.Paused {
			text += " (paused)"
		}
		queues = append(queues, text)
	}
	rows := [][]string{
		{"NAMESPACE", fmt.Sprintf("%s, %d shards, at %s", v.Namespace, v.Shards, v.Redis)},
		{"jobs", fmt.Sprintf("%s root jobs, %s aliases; %s failed", term.Number(v.Roots), term.Number(v.Aliases), term.Number(v.Failed))},
		{"retention", fmt.Sprintf("%s settled and are removed later, %s kept as nobody has read their output, %s removed",
			term.Number(v.Retained), term.Number(v.Kept), term.Number(v.Removed))},
		{"due", fmt.Sprintf("%s to be looked at later, %s of them late", term.Number(v.Due), term.Number(v.Overdue))},
		{"left to do", fmt.Sprintf("%s commands between shards, %s background tasks", term.Number(v.Orders), term.Number(v.BackgroundTasks))},
		{"engines", fmt.Sprintf("%d, with %d of %d runs in progress", len(v.Engines), v.Running, slots)},
		{"runs", runsRow(&v.Recent)},
		{"queued", orDash(strings.Join(queues, ", "))},
	}
	for _, one := range v.Servers {
		rows = append(rows, serverRows(style, one)...)
	}
	for i := 1; i < len(rows); i++ {
		rows[i][0] = style.Faint(rows[i][0])
	}
	return term.Table(w, rows, style)
}

// runsRow tells what runs do now.
func runsRow(r *api.Rates) string {
	if r.Runs == 0 && r.Failed == 0 {
		return "none in the last seconds"
	}
	short := func(seconds float64) string { return term.Short(time.Duration(seconds * float64(time.Second))) }
	return fmt.Sprintf("%s/s, %s failed; %s messages/s read, %s written; half begin within %s, 95 %% within %s; code takes %s, %s",
		term.Rate(r.Runs), term.Rate(r.Failed), term.Rate(r.Read), term.Rate(r.Written),
		short(r.Waited.P50), short(r.Waited.P95), short(r.Took.P50), short(r.Took.P95))
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
