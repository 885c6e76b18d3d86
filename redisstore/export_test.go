package redisstore

import (
	"time"

	"github.com/weirworks/weir/job"
)

// NeededCommands are those that Examine asks about.
var NeededCommands = commands

// Occupy makes commits of a job's shard wait, at most so long, as if one were under way.
// waiting tells how many do, pass lets them go.
func Occupy(s *Store, id job.ID, wait time.Duration) (waiting func() int, pass func()) {
	due := s.keys.dueOf(id)
	s.lanes.wait = wait
	s.lanes.enter(due, nil)
	return func() int {
		s.lanes.mu.Lock()
		defer s.lanes.mu.Unlock()
		return len(s.lanes.busy[due])
	}, func() { s.lanes.pass(due) }
}
