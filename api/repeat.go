package api

import (
	"time"

	"github.com/weirworks/weir/job"
)

// NewRepeat says when a job that is to be created runs again.
type NewRepeat struct {
	Schedule string `json:"schedule" doc:"of the dialect repeat, like FINISHED, +1 DAY, or of another one with its tag, like cron:30 9 * * *"`
	Zone     string `json:"zone,omitempty" doc:"the time zone of the schedule; UTC if empty"`
	Missed   string `json:"missed,omitempty" doc:"of times that came while the job could not run: one, skip, all, or the most to take"`
}

// repeatRule is what is to be created; nil: no repetition.
func (r *NewRepeat) repeatRule() *job.RepeatRule {
	if r == nil {
		return nil
	}
	return &job.RepeatRule{Schedule: r.Schedule, Zone: r.Zone, Missed: r.Missed}
}

// Repeat is how a job repeats.
type Repeat struct {
	Schedule   string     `json:"schedule" doc:"with the tag of its dialect"`
	Zone       string     `json:"zone,omitempty"`
	Understood string     `json:"understood" doc:"the schedule in English"`
	Missed     string     `json:"missed,omitempty"`
	Count      int64      `json:"count" doc:"how often the job has completed"`
	Passed     int64      `json:"passed,omitempty" doc:"times that were passed over, as missed says"`
	Scheduled  *time.Time `json:"scheduled,omitempty" doc:"when the next run is due, or when the present one was"`
	Ended      *time.Time `json:"ended,omitempty" doc:"when the job completed last"`
}

// repeatOf is how a job repeats as other programs see it.
func repeatOf(r *job.Repeats) *Repeat {
	if r == nil {
		return nil
	}
	return &Repeat{
		Schedule: r.Schedule.String(), Zone: r.Schedule.Zone(), Understood: r.Schedule.Understood(), Missed: r.Missed,
		Count: r.Count, Passed: r.Passed, Scheduled: timeOrNull(r.Scheduled), Ended: timeOrNull(r.Ended),
	}
}
