package workkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/schedule"
)

// Now is the schedule of what is to run at once.
const Now = "now"

// When reads when an entry is to run: Now, or a schedule of package schedule, with a tag or without: English such as "in 5 minutes",
// "7pm tomorrow" or "every weekday at 9am", a cron expression, a moment. It returns it in the dialect cron7, and the first time. now is the moment of
// asking. What cron7 cannot say, and what never comes, is refused with an error that wraps job.ErrConfig.
func When(text string, now time.Time) (cron string, first time.Time, err error) {
	if text == Now || text == "" {
		return schedule.Cron7Once(now), now, nil
	}
	kind, rest := schedule.Detect(text)
	said, err := schedule.Parse(kind, rest, "", now)
	if err == nil {
		cron, err = said.Cron7()
	}
	var s schedule.Schedule
	if err == nil {
		s, err = schedule.Parse(schedule.Cron7, cron, "", now)
	}
	if err != nil {
		return "", first, fmt.Errorf("%w of %s: %w", job.ErrConfig, Label, err)
	}
	first, _ = s.Next(schedule.Moments{Now: now})
	if want, _ := said.Next(schedule.Moments{Now: now}); said.Kind() == schedule.RRule && want.After(first) {
		return "", first, fmt.Errorf("%w of %s: %s begins at %s, and cron7 cannot say when it begins: add it when that is the next time", job.ErrConfig, Label, said, want.Format(time.RFC3339))
	}
	return cron, first, nil
}

// Remove removes an entry from a schedule. What it has launched goes on. The error wraps job.ErrNotFound if there is none of that ID.
func Remove(ctx context.Context, s *redisstore.Store, name, id string) error {
	kit, err := s.WorkKit(name)
	if err != nil {
		return err
	}
	there, err := kit.Remove(ctx, id, idOf)
	if err == nil && !there {
		err = fmt.Errorf("%w: schedule %s has no entry %.80q: weir trigger list --workkit %[2]s lists them", job.ErrNotFound, name, id)
	}
	return err
}

// Added is what Add did.
type Added struct {
	ID   string    `json:"id"`
	Cron string    `json:"cron"`
	Due  time.Time `json:"due"` // first; of one that was there, it may have come already
	New  bool      `json:"new"` // false: an entry of that ID was there, and is as it was
	// Warnings say why it might not be launched, as nobody has served the schedule yet, or no engine has its type. Both may still come.
	Warnings []string `json:"warnings,omitempty"`
}

// Add adds an entry to a schedule, as WorkKit does: an entry that is there already, waiting or running, is left as it is. when is
// what When reads. args are the elements of the array that the job gets.
func Add(ctx context.Context, s *redisstore.Store, name, when, jobName string, args ...any) (*Added, error) {
	kit, err := s.WorkKit(name)
	if err != nil {
		return nil, err
	}
	if jobName == "" {
		return nil, fmt.Errorf("%w of %s: it names no job: give the type to launch", job.ErrConfig, Label)
	}
	raw, err := array(args)
	if err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	e := Entry{Args: raw, Job: jobName}
	a := &Added{}
	if e.Cron, a.Due, err = When(when, now.UTC()); err != nil {
		return nil, err
	}
	if a.ID, err = e.ID(); err != nil {
		return nil, err
	}
	payload, err := e.Canonical()
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", job.ErrConfig, Label, err)
	}
	parsed, err := parse(payload)
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", job.ErrConfig, Label, err)
	}
	a.Cron = e.Cron
	if a.Warnings, err = warnings(ctx, s, name, parsed); err != nil {
		return nil, err
	}
	a.New, err = kit.Add(ctx, a.ID, member(a.ID), payload, a.Due)
	if err != nil {
		return nil, fmt.Errorf("adding to %s: %w", name, err)
	}
	return a, nil
}

// warnings say why an entry might not be launched.
func warnings(ctx context.Context, s *redisstore.Store, name string, e *Entry) (all []string, err error) {
	known, err := s.WorkKits(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, name) {
		all = append(all, fmt.Sprintf("nothing has been added to schedule %s before, and no worker has served it: start one with weir worker --workkit %[1]s%s", name, meant(name, known)))
	}
	types := catalogue{store: s}
	if err := types.read(ctx); err != nil {
		return nil, err
	}
	if _, err := types.plan(e); err != nil {
		all = append(all, "it is kept, and cannot be launched yet: "+err.Error())
	}
	return all, nil
}

// meant says which schedule a name may have been meant to be.
func meant(name string, known []string) string {
	if near := port.Suggest(name, known); strings.HasPrefix(near, "did you mean") {
		return "; " + near
	}
	return ""
}
