package main

// Stats is what is known of a number of files.
type Stats struct {
	Files        int64 `json:"files"`        // counted
	Skipped      int64 `json:"skipped"`      // not valid UTF-8
	Bytes        int64 `json:"bytes"`        // of the counted files
	SkippedBytes int64 `json:"skippedBytes"` // of the others
	Words        int64 `json:"words"`
}

func (s *Stats) add(t Stats) {
	s.Files += t.Files
	s.Skipped += t.Skipped
	s.Bytes += t.Bytes
	s.SkippedBytes += t.SkippedBytes
	s.Words += t.Words
}
