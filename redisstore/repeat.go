package redisstore

import (
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
)

// repeatFields are the fields of a job's hash that say when it runs again: `repeat`, and if it is created to run at a time
// `repeated`, how far it is. repeats.lua adds to that the version of the job.
func repeatFields(r *job.Repeats, at time.Time) []any {
	text, err := r.Text()
	if err != nil { // a Schedule always encodes
		return nil
	}
	fields := []any{"repeat", text}
	if !at.IsZero() {
		first := *r
		first.Scheduled = at
		fields = append(fields, "repeated", first.Progress()+" -1")
	}
	return fields
}

// repeats decodes what repeatFields returns.
func (d *decoder) repeats(text, progress string) *job.Repeats {
	if text == "" {
		return nil
	}
	r, err := job.RepeatsOf(text, progress)
	if err != nil {
		d.err = fmt.Errorf("reading when a job repeats: %w", err)
		return nil
	}
	return r
}
