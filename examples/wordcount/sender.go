package main

import (
	"fmt"

	"github.com/weirworks/weir/worker"
)

// sentAt is where the state has the number of pages sent.
const sentAt = "sent"

// sender sends a row of pages of which the state knows how many were sent, so that
// commits may lie between them and nothing is sent twice. The pages must be the same
// each time.
type sender struct {
	run     *worker.Run
	sent    int // pages sent, by runs before this one too
	passed  int // pages that this run came to
	written int // since the last commit
}

// newSender returns a sender for a run that has written so much since its last commit.
func newSender(run *worker.Run, written int) (*sender, error) {
	s := &sender{run: run, written: written}
	_, err := run.State().Get(sentAt, &s.sent)
	return s, err
}

// send calls write for a page of the given size if that page was not sent yet.
func (s *sender) send(size int, write func() error) error {
	if s.passed++; s.passed <= s.sent {
		return nil
	}
	if s.written += size; s.written > commitWeight {
		if err := s.save(); err != nil {
			return err
		}
		if err := s.run.Checkpoint(); err != nil {
			return fmt.Errorf("committing results: %w", err)
		}
		s.written = size
	}
	s.sent = s.passed
	return write()
}

// save notes how many pages were sent, for the commit that follows.
func (s *sender) save() error { return s.run.State().Set(sentAt, s.sent) }
