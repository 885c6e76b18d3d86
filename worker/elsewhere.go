package worker

import (
	"errors"
	"slices"

	"github.com/weirworks/weir/internal/store"
)

// Elsewhere marks an error that says that this engine is not able, or not allowed, to do what a job asks for, such as to run a
// program: while another engine lives that has the type and may be able to, the job is left to that one, which is no try. Which
// may be are engines of other programs, or with other settings, see Local. If there is none the run fails with the error.
// Elsewhere(nil) is nil.
func Elsewhere(err error) error {
	if err == nil {
		return nil
	}
	return &elsewhereError{err}
}

type elsewhereError struct{ error }

func (e *elsewhereError) Unwrap() error { return e.error }

// Local is a worker whose registered value has settings of its process which decide what its runs can do, such as the programs
// that they may run. Engines whose workers return different Settings are different to Elsewhere.
type Local interface {
	Settings() string
}

// elsewhere leaves a job to another engine that lives, if its error asks for that, and there is one that has not refused it yet.
func (t *turn) elsewhere(snap *store.Snapshot, why error) *store.Delta {
	if snap.Shutdown || !errors.As(why, new(*elsewhereError)) {
		return nil
	}
	engines, err := t.cfg.Store.Engines(t.Engine.runs)
	needs, own := snap.Info.NeedsOf(), t.registry().build
	gone := func(build string) bool {
		return build == own || !slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return e.Build == build })
	}
	needs.Refused = append(slices.DeleteFunc(slices.Clone(needs.Refused), gone), own)
	slices.Sort(needs.Refused)
	typ := needs.String()
	if err != nil || !slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return !e.Stopping && e.Takes(snap.Info.Queue, typ) }) {
		return nil
	}
	t.registry().refuse()
	d := handBack(snap, 0, firstLine("it waits for an engine that can do it; one could not: "+why.Error()))
	d.Needs = &needs
	return d
}

// everywhere has any engine try a job again that has failed as none may run it, once somebody insists.
func everywhere(d *store.Delta, snap *store.Snapshot, why error) {
	if needs := snap.Info.NeedsOf(); errors.As(why, new(*elsewhereError)) && len(needs.Refused) > 0 {
		needs.Refused = nil
		d.Needs = &needs
	}
}
