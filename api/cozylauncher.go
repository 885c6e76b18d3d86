package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/trigger"
)

// CozyLauncher are the attributes of a launcher, which is a trigger.
type CozyLauncher struct {
	Type      string           `json:"type"`
	Arguments string           `json:"arguments"`
	Worker    string           `json:"worker" doc:"empty if it launches graphs"`
	Options   CozyOptions      `json:"options"`
	Limits    json.RawMessage  `json:"limits" doc:"as docs/triggers.md describes them"`
	Next      *time.Time       `json:"next" doc:"when it launches next"`
	Launches  int64            `json:"launches" doc:"jobs that it has launched"`
	Waiting   int64            `json:"waiting" doc:"firings and messages that wait"`
	Dropped   map[string]int64 `json:"dropped" doc:"what launched no job, by reason"`
	Paused    bool             `json:"paused"`
}

// The types of launchers.
const (
	cozyCron     = "@cron"
	cozyInterval = "@interval"
	cozyAt       = "@at"
	cozyIn       = "@in"
	cozyEvent    = "@event"
	cozyWebhook  = "@webhook"
)

var cozyLauncherTypes = append([]string{cozyCron, cozyInterval, cozyAt, cozyIn, cozyEvent, cozyWebhook}, cozyPeriodic...)

// cozySchedule is the schedule that a launcher's arguments are. What it is says more.
func cozySchedule(typ, text string, now time.Time, what ...string) (string, error) {
	kind, written := schedule.Cron, text
	switch typ {
	case cozyHourly, cozyDaily, cozyWeekly, cozyMonthly:
		var err error
		if written, err = cozySlot(typ, text, what...); err != nil {
			return "", err
		}
	case cozyCron:
		if n := len(strings.Fields(text)); n != 6 {
			return "", problem(kindUsage, "%d of six fields are there: the first is the second, such as 0 30 9 * * 1-5", n)
		}
	case cozyInterval:
		kind = schedule.Every
	case cozyAt:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "", problem(kindUsage, "%.80q is not a time: use RFC 3339, such as 2026-03-12T07:00:00Z", text)
		}
		kind = schedule.At
	case cozyIn:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return "", problem(kindUsage, "%.80q is not a duration: use one such as 10m or 1h30m", text)
		}
		kind, written = schedule.At, now.Add(d).Format(time.RFC3339Nano)
	}
	_, err := schedule.Parse(kind, written, "", now)
	return string(kind) + ":" + written, err
}

// cozyWanted is the launcher that somebody wants.
type cozyWanted struct {
	typ, when, whenAt string
	worker, workerAt  string
	wish              cozyWish
	limits            trigger.Limits
}

// read takes what a body says.
func (w *cozyWanted) read(o *cozyObject) {
	w.whenAt, w.workerAt = o.at+"/arguments", o.at+"/worker"
	if w.typ = o.text("type"); w.typ != "" && !slices.Contains(cozyLauncherTypes, w.typ) {
		o.refuse("type", "%.80q is not known: %s", w.typ, port.Suggest(w.typ, cozyLauncherTypes))
	} else if w.typ == "" {
		o.refuse("type", "is missing: use one of %s", strings.Join(cozyLauncherTypes, ", "))
	}
	w.when, w.worker, w.limits = o.text("arguments"), o.text("worker"), cozyLimits(o)
	options, _ := o.take("options")
	nested := o.object(o.at+"/options", options)
	w.wish = newCozyWish()
	w.wish.read(nested)
	nested.end()
}

// definition is the trigger that the launcher is, in a namespace.
func (w *cozyWanted) definition(domain string, t *job.TypeInfo, now time.Time) (d trigger.Definition, err error) {
	l := &trigger.Launch{
		Type: t.Type, Queue: t.Queue, Priority: w.wish.priority, Tries: w.wish.options.Tries, Timeout: component.Duration(w.wish.options.Timeout),
		Backoff: component.Duration(w.wish.options.Backoff), MaxBackoff: component.Duration(w.wish.options.MaxBackoff),
	}
	d = trigger.Definition{Launch: l, Limits: w.limits}
	memo := cozyMemo{Launcher: w.typ}
	if w.typ == cozyEvent || w.typ == cozyWebhook {
		if !w.wish.empty() {
			return d, cozyRefusal(kindUsage, w.wish.at, "arguments: jobs of a launcher of type %s get the message that it fires for: leave them out", w.typ)
		}
		if d.Channel = w.when; w.typ == cozyWebhook {
			d.Channel = ""
		}
		if w.typ == cozyEvent {
			if err := port.CheckChannel(w.when); err != nil {
				return d, unparsable(w.whenAt, err)
			}
		} else if w.when != "" {
			return d, unparsable(w.whenAt, errors.New("a webhook has no arguments: leave them out"))
		}
		l.Port, l.Memo, l.MemoMessage = cozyPort(t), memo.raw(), "arguments"
		return d, nil
	}
	var wrong error
	l.Port, l.Message, wrong = cozyMessage(t, &w.wish)
	if d.Schedule, err = cozySchedule(w.typ, w.when, now, domain, t.Type, string(l.Message)); err != nil {
		return d, unparsable(w.whenAt, err)
	}
	if wrong != nil {
		return d, wrong
	}
	memo.Arguments = l.Message
	l.Memo = memo.raw()
	return d, nil
}

// unparsable is what is wrong with the arguments of a launcher.
func unparsable(where string, err error) *Problem {
	return cozyRefusal(Kind{"usage", http.StatusBadRequest, 2}, where, "Trigger unparsable: arguments: %v", err)
}

// cozyLauncherOf is a trigger as a launcher.
func cozyLauncherOf(info *job.Info, t *trigger.Status) (CozyResource[CozyLauncher], error) {
	d := &t.Definition
	v := CozyLauncher{Launches: t.Launches, Waiting: t.Waiting, Dropped: t.Dropped, Paused: t.Paused}
	if v.Dropped == nil {
		v.Dropped = map[string]int64{}
	}
	if len(t.Next) > 0 {
		v.Next = &t.Next[0]
	}
	v.Type, v.Arguments = cozyKind(d)
	if memo := cozyMemoOf(info); memo.Type != "" && memo.Schedule == d.Schedule {
		v.Type, v.Arguments = memo.Type, memo.When
	}
	if l := d.Launch; l != nil {
		v.Worker = l.Type
		v.Options = cozyOptionsOf(l.Priority, job.RunOptions{Tries: l.Tries, Timeout: time.Duration(l.Timeout), Backoff: time.Duration(l.Backoff)}, l.Message)
	}
	var err error
	if v.Limits, err = json.Marshal(d.Limits); err != nil {
		return CozyResource[CozyLauncher]{}, err
	}
	rev, err := revOf(info.Version, v)
	return CozyResource[CozyLauncher]{Type: cozyLaunchers, ID: info.ID, Rev: rev, Attributes: v, Links: CozyLinks{Self: "/jobs/launchers/" + string(info.ID)}}, err
}

// cozyKind is the type of a launcher, and its arguments.
func cozyKind(d *trigger.Definition) (typ, arguments string) {
	switch d.Kind() {
	case trigger.Event:
		return cozyEvent, d.Channel
	case trigger.Webhook:
		return cozyWebhook, ""
	case trigger.Scheduled:
	}
	kind, text := schedule.Cron, d.Schedule
	if tag, rest, ok := strings.Cut(text, ":"); ok && slices.Contains(schedule.Kinds(), schedule.Kind(tag)) {
		kind, text = schedule.Kind(tag), rest
	}
	if kind == schedule.Every {
		return cozyInterval, text
	}
	return "@" + string(kind), text
}

// isCozyLauncher tells whether a job is a launcher: a trigger that may fire yet.
func isCozyLauncher(i *job.Info) bool {
	return i.Type == trigger.Type && !i.Status.Settled() && i.Status != job.Terminating
}

// cozyLauncher is a launcher as a resource.
func (s *session) cozyLauncher(ctx context.Context, info *job.Info) (CozyResource[CozyLauncher], error) {
	t, err := trigger.Of(ctx, s.client, info, 1)
	if err != nil {
		return CozyResource[CozyLauncher]{}, err
	}
	return cozyLauncherOf(info, t)
}

// cozyLauncherOperations are those on launchers.
func (s *Server) cozyLauncherOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/jobs/launchers/{worker}", id: "cozy-launch", group: groupCozy, role: operate, status: http.StatusCreated, summary: "Make a launcher of jobs of a worker",
		about: "A launcher is a trigger (docs/triggers.md). Its options are those of the jobs that it launches. Arguments that are no such schedule answer 400, an unknown type 422.",
	}, cozyLaunch)
	add(s, operation{
		method: http.MethodGet, path: "/jobs/launchers", id: "cozy-launchers", group: groupCozy, role: read, summary: "List the launchers, the oldest first",
	}, func(ctx context.Context, s *session, in *CozyPage) (*reply[CozyMany[CozyLauncher]], error) {
		list, links, err := s.cozyList(ctx, "/jobs/launchers", *in, job.Filter{Type: trigger.Type}, isCozyLauncher)
		if err != nil {
			return nil, err
		}
		page := CozyMany[CozyLauncher]{Links: links, Data: []CozyResource[CozyLauncher]{}}
		for _, info := range list {
			one, err := s.cozyLauncher(ctx, info)
			if errors.Is(err, job.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			page.Data = append(page.Data, one)
		}
		return answer(page, nil)
	})
	add(s, operation{
		method: http.MethodGet, path: "/jobs/launchers/{job}", id: "cozy-launcher", group: groupCozy, role: read, summary: "Show a launcher",
		about: "One that launches no more, as its time has come, is not found.",
	}, func(ctx context.Context, s *session, in *CozyPath) (*reply[CozyOne[CozyLauncher]], error) {
		_, info, err := s.cozyFind(ctx, in.Job, "launcher", isCozyLauncher)
		if err != nil {
			return nil, err
		}
		one, err := s.cozyLauncher(ctx, info)
		return answer(CozyOne[CozyLauncher]{one}, err)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/jobs/launchers/{job}", id: "cozy-delete", group: groupCozy, role: operate, status: http.StatusNoContent, summary: "Delete a launcher",
		about: "Jobs that it launched go on.",
	}, func(ctx context.Context, s *session, in *CozyPath) (*nothing, error) {
		h, _, err := s.cozyFind(ctx, in.Job, "launcher", isCozyLauncher)
		if err == nil {
			ctx, cancel := context.WithTimeout(s.acting(ctx), deletion)
			defer cancel()
			err = trigger.Delete(ctx, s.store, h)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/jobs/launchers/{job}/jobs", id: "cozy-launched", group: groupCozy, role: read, summary: "List the jobs that a launcher has launched, the oldest first",
	}, func(ctx context.Context, s *session, in *struct {
		CozyPath
		CozyPage
	},
	) (*reply[CozyMany[CozyJob]], error) {
		_, info, err := s.cozyFind(ctx, in.Job, "launcher", isCozyLauncher)
		if err != nil {
			return nil, err
		}
		return s.cozyJobPage(ctx, "/jobs/launchers/"+in.Job+"/jobs", in.CozyPage, job.Filter{Labels: map[string]string{trigger.LabelTrigger: string(info.ID)}})
	})
	add(s, operation{
		method: http.MethodPost, path: "/jobs/webhooks/{job}", id: "cozy-webhook", group: groupCozy, role: operate, status: http.StatusNoContent, summary: "Send a message to a launcher of type @webhook",
		about: "The body is the message; without one it is null. A launcher of another type refuses it with 422.",
	}, func(ctx context.Context, s *session, in *struct {
		CozyPath
		Body *json.RawMessage
	},
	) (*nothing, error) {
		h, _, err := s.cozyFind(ctx, in.Job, "launcher", isCozyLauncher)
		if err == nil {
			err = s.unverified(ctx, h)
		}
		if err == nil {
			err = trigger.Send(s.acting(ctx), s.client, h, called(in.Body))
		}
		return done(err)
	})
}

func cozyLaunch(ctx context.Context, s *session, in *struct {
	CozyWorker
	CozyKey
	Body *cozyLauncherBody
},
) (*reply[CozyOne[CozyLauncher]], error) {
	typ, err := s.cozyType(ctx, in.Worker)
	if err != nil {
		return nil, err
	}
	var w cozyWanted
	raw := given(in.Body).RawMessage
	if err := cozyBody(raw, cozyLaunchers, w.read); err != nil {
		return nil, err
	}
	if w.worker != "" && w.worker != in.Worker {
		return nil, cozyRefusal(kindUsage, w.workerAt, "worker %.80q is not that of the path, %.80q: leave it out", w.worker, in.Worker)
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	d, err := w.definition(s.store.Namespace(), typ, now)
	if err != nil {
		return nil, err
	}
	options := []job.Option{job.By(s.principal.Name), job.Memo(cozyMemo{Type: w.typ, When: w.when, Schedule: d.Schedule}.raw())}
	if in.Key != "" {
		options = append(options, job.Key(in.Key))
	}
	var h *client.Handle
	if err := s.once(ctx, "cozy-launch", in.Key, []any{in.Worker, raw}, func() (err error) {
		h, err = trigger.Add(s.acting(ctx), s.client, d, options...)
		return misdefined(err)
	}); err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	one, err := s.cozyLauncher(ctx, info)
	return answer(CozyOne[CozyLauncher]{one}, err)
}
