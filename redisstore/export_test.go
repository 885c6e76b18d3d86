package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// NeededCommands are those that Examine asks about.
var NeededCommands = append(append([]string{}, reading...), writing...)

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

// EncryptionOf is what Examine says of a URL's encryption.
func EncryptionOf(t testing.TB, url string) Finding {
	t.Helper()
	target, err := parseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	e := &examiner{Store: &Store{target: target}, check: "encryption"}
	e.encryption()
	return e.findings[0]
}

// RetentionLua is what the scripts know of the retention of namespaces.
func RetentionLua() string { return retentionLua() }

// Programs are all scripts as servers get them that have no functions, by name.
func Programs() map[string]*redis.Script {
	all := make(map[string]*redis.Script, len(programs))
	for _, p := range programs {
		all[p.name] = p.lua
	}
	return all
}
