package delivery

import (
	"sync"
	"time"

	"github.com/weirworks/weir/internal/store"
)

// FreeSlot is a free slot of a server of this process that sleeps. A store that may make a job ready begins its
// run in the same call, and has it run there: that is a round trip less than a wake.
type FreeSlot struct {
	Begin  store.Begin
	Types  []string // of jobs that may begin
	Queues []string // and where they may lie
	since  time.Time
	server *server
	left   sync.Once
}

// FreeSlot takes a free slot, if there is one; else it returns nil. The caller must Leave it.
func (b *Broker) FreeSlot() *FreeSlot {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		var open []string
		for q, is := range s.line.open() {
			if is {
				open = append(open, q)
			}
		}
		if s.over || s.cfg.Next == nil || len(open) == 0 || !s.line.claim() {
			continue
		}
		freeSlot := &FreeSlot{Queues: open, server: s, since: time.Now()}
		freeSlot.Begin, freeSlot.Types = s.cfg.Next()
		return freeSlot
	}
	return nil
}

// Run begins to run what began, and leaves the free slot when that is done. It returns false if the server
// has been told to stop meanwhile: it does not wait for those who have a free slot.
func (s *FreeSlot) Run(snap *store.Snapshot) (ok bool) {
	s.server.broker.mu.Lock()
	defer s.server.broker.mu.Unlock()
	if s.server.over {
		return false
	}
	s.left.Do(func() {
		s.server.do(func() {
			defer s.leave()
			s.server.cfg.Begun(snap, s.since)
		})
	})
	return true
}

// Leave gives a free slot back, unless something runs in it.
func (s *FreeSlot) Leave() { s.left.Do(s.leave) }

func (s *FreeSlot) leave() { <-s.server.line.slots }
