package rig

import (
	"context"
	"time"

	"github.com/weirworks/weir/job"
)

// pausing pauses the queue that all work is in, and lets it go on after a while. Meanwhile asynq may lose what it knows of that.
func (r *rig) pausing(ctx context.Context) {
	if !pause(ctx, r.between(time.Second, 4*time.Second)) {
		return
	}
	if !r.insist(ctx, "pausing a queue", func(ctx context.Context) error {
		_, err := r.store.PauseQueue(ctx, job.DefaultQueue)
		return err
	}) {
		return
	}
	r.fault("queue_pause")
	if r.chance() < 0.3 {
		if r.rdb.Del(ctx, "asynq:{weir:"+namespace+":"+job.DefaultQueue+"}:paused").Err() == nil {
			r.fault("pause_lost")
		}
	}
	pause(ctx, r.between(50*time.Millisecond, time.Second))
	r.resume(ctx)
}

// resume lets that queue go on, if it is paused.
func (r *rig) resume(ctx context.Context) {
	r.insist(ctx, "resuming a queue", func(ctx context.Context) error {
		_, err := r.store.ResumeQueue(ctx, job.DefaultQueue)
		return err
	})
}
