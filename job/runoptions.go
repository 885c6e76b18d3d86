package job

import (
	"fmt"
	"time"
)

// RunOptions are what a node of a graph says about the runs of its jobs, in place of the options of their type. A zero
// leaves it to the type.
type RunOptions struct {
	// Tries is how many runs in a row may fail before the job does.
	Tries int `json:",omitzero"`
	// Backoff is the delay before the second try. It doubles with each further one, up to MaxBackoff; zero there means an hour,
	// or Backoff if that is longer.
	Backoff    time.Duration `json:",omitzero"`
	MaxBackoff time.Duration `json:",omitzero"`
	// Timeout ends the context of a run that takes longer.
	Timeout time.Duration `json:",omitzero"`
}

// Validate reports the first field that makes no sense. The error wraps ErrValue.
func (o RunOptions) Validate() error {
	wrong := func(what string, d time.Duration) error {
		return fmt.Errorf("%w: %s %s: use at least 1ms", ErrValue, what, d)
	}
	short := func(d time.Duration) bool { return d != 0 && d < time.Millisecond }
	switch {
	case o.Tries < 0:
		return fmt.Errorf("%w: %d tries: use at least 1", ErrValue, o.Tries)
	case short(o.Backoff):
		return wrong("a backoff of", o.Backoff)
	case short(o.MaxBackoff):
		return wrong("a greatest backoff of", o.MaxBackoff)
	case short(o.Timeout):
		return wrong("a timeout of", o.Timeout)
	case o.MaxBackoff != 0 && o.Backoff == 0:
		return fmt.Errorf("%w: a greatest backoff of %s without a first one: say both", ErrValue, o.MaxBackoff)
	case o.MaxBackoff != 0 && o.MaxBackoff < o.Backoff:
		return fmt.Errorf("%w: a greatest backoff of %s, below the first one of %s", ErrValue, o.MaxBackoff, o.Backoff)
	}
	return nil
}
