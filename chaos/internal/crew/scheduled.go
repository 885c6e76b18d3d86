package crew

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

// The keys of a schedule of WorkKit to which the harness adds as programs do that know nothing of Weir.
const (
	Timetable     = "timetable"
	TimetableJobs = Timetable + ":jobs"
	TimetableNext = Timetable + ":next"
)

// Appointment is an entry of it that has come.
type Appointment struct {
	N   int `json:"n"`
	Due any `json:"due"`
}

// Scheduled is what its entries launch.
type Scheduled struct {
	tuned
	In  port.In[[]int]
	Out port.Out[Appointment]
}

// JobType implements job.TypeNamer.
func (*Scheduled) JobType() string { return "chaos_scheduled" }

// Run implements worker.Worker.
func (w *Scheduled) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	for args, err := range w.In.All() {
		if err != nil {
			return err
		}
		keys, err := run.MessageContext("in")
		if err != nil {
			return err
		}
		think()
		for _, n := range args {
			if err := w.Out.Write(Appointment{n, keys[workkit.ContextDue]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen serves the timetable until ctx ends. On a cluster there is none.
func listen(ctx context.Context, s *redisstore.Store) error {
	if strings.HasPrefix(os.Getenv(URLEnv), "redis+cluster://") {
		return nil
	}
	l, err := workkit.New(workkit.Config{Store: s, Schedules: []string{Timetable}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	return l.Run(ctx)
}
