// Package lab is what every case of the benchmark needs: a Redis of its own, how much work
// there is to do, items to do it with and a ledger of those that arrived.
package lab

import (
	"context"
	"fmt"
	"time"
)

// Lab is where one trial of one case takes place.
type Lab struct {
	Redis       *Redis // nil in programs that have no use for it
	Size        Size
	Concurrency int // runs, or tasks, or producers, at a time: the same for every system
}

// Figure is one number that was measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Less  bool    `json:"less"` // less is better
}

// Case is one system at one workload. Run fails if the results of the work are wrong.
type Case struct {
	Workload string
	System   string
	Fsync    string // appendfsync of the Redis, if not what the others have
	Cluster  bool   // the Redis is a Cluster of three
	Run      func(ctx context.Context, l *Lab) ([]Figure, error)
}

// Size says how much work there is.
type Size struct {
	Chain       int           `json:"chain"`       // items, each a tree of its own
	Hops        int           `json:"hops"`        // items that go through the chain one at a time
	Stream      int           `json:"stream"`      // messages that are read one a run
	Streams     int           `json:"streams"`     // rows of three jobs that share them
	Batch       int           `json:"batch"`       // messages that are read many a run
	Trees       int           `json:"trees"`       // parents that wait for children
	Children    int           `json:"children"`    // of each parent
	Wakes       int           `json:"wakes"`       // messages to a job that sleeps
	Idle        time.Duration `json:"idle"`        // how long a worker without work is looked at
	Weighed     []int         `json:"weighed"`     // numbers of jobs that sleep and are weighed; ascending
	Jobs        []int         `json:"jobs"`        // numbers of jobs that sleep while others run; ascending
	Siblings    []int         `json:"siblings"`    // numbers of children of one parent while others run; ascending
	Broods      []int         `json:"broods"`      // numbers of children of a job that spawns more; ascending
	Kills       int           `json:"kills"`       // workers that are killed
	Stuck       int           `json:"stuck"`       // jobs that each of them has
	Waiting     int           `json:"waiting"`     // messages in one port, for what makes scripts long
	Writes      int           `json:"writes"`      // messages of one commit, for the same
	Subscribers int           `json:"subscribers"` // of one channel
	Family      int           `json:"family"`      // children of one job
	Wide        int           `json:"wide"`        // jobs of one graph that one port feeds
	Members     int           `json:"members"`     // jobs that share a port, or that write to one
	Triggers    int           `json:"triggers"`    // that fire once each
	Spread      time.Duration `json:"spread"`      // over which they do
	Posts       int           `json:"posts"`       // messages that are written over HTTP
	Waiters     int           `json:"waiters"`     // workers that wait for a run over HTTP
	Payloads    int           `json:"payloads"`    // written to a journal; a tenth of them are jobs of a handler
	Slow        bool          `json:"slow"`        // also what takes minutes: asynq after a kill
	Patience    time.Duration `json:"patience"`    // how long a case may take
}

// Check returns an error unless a size can be worked with.
func (s Size) Check() error {
	if s.Streams < 1 || s.Stream%s.Streams != 0 || s.Batch%s.Streams != 0 {
		return fmt.Errorf("%d and %d messages cannot be shared evenly by %d streams", s.Stream, s.Batch, s.Streams)
	}
	return nil
}

// Rows is the messages of all streams: their name in the results, how many there are, and the
// rows of jobs that share them.
func (s Size) Rows() (name string, n, rows int) { return "stream", s.Stream, s.Streams }

// Row is the messages of one of them, when it is alone.
func (s Size) Row() (name string, n, rows int) { return "single", s.Stream / s.Streams, 1 }
