package api

import (
	"time"

	"github.com/weirworks/weir/job"
)

// NewUnique has a job or a graph created unless one with the same unique key is there.
type NewUnique struct {
	Key   *string   `json:"key,omitempty" maxLength:"128" doc:"what jobs that are the same work have in common; without it type and args, of a graph its definition"`
	For   *duration `json:"for,omitempty" doc:"a job is found that was created at most so long ago, whether it has settled or not; without it one that has not settled"`
	Merge bool      `json:"merge,omitempty" doc:"merge args into those of the job that is there, as a JSON merge patch (RFC 7396), unless it has begun to run; it needs a key, and is not for graphs"`
}

// by is by what it is to be unique; nil: by nothing.
func (u *NewUnique) by() (*job.UniqueBy, error) {
	if u == nil {
		return nil, nil
	}
	key, err := textOf("unique.key", u.Key)
	by := &job.UniqueBy{Key: key, Merge: u.Merge}
	if u.For != nil {
		if by.For = time.Duration(*u.For); by.For == 0 && err == nil {
			err = wrong("unique.for is no time: give one like 1h, or leave it out for until the job is done")
		}
	}
	return by, err
}

// textOf is a text that may be left out, and is not empty if it is there.
func textOf(name string, text *string) (string, error) {
	switch {
	case text == nil:
		return "", nil
	case *text == "":
		return "", wrong("%s is empty: give a text, or leave it out", name)
	}
	return *text, nil
}
