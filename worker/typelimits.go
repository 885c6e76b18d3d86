package worker

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// keepLimits registers limits of types again that this engine declares and that were lost, see lostLimits. id is the engine's own,
// types are the registered ones.
func (e *Engine) keepLimits(ctx context.Context, id string, types []job.TypeInfo) error {
	types = slices.DeleteFunc(types, func(t job.TypeInfo) bool {
		k := e.registry().kinds[t.Type]
		return e.cfg.Queues[t.Queue] == 0 || k == nil || k.options.Limit() == (job.TypeLimit{}) || k.options.Limit() == t.Limit()
	})
	if len(types) == 0 {
		return nil
	}
	living, err := e.cfg.Store.Engines(ctx)
	if err != nil {
		return err
	}
	if lost := lostLimits(types, living, id); len(lost) > 0 {
		return e.cfg.Store.Register(ctx, lost)
	}
	return nil
}

// lostLimits returns those of the registered types that are to have the limit again that an engine declares: what is registered is
// another one, which no engine declares that lives, as the one that registered it has stopped, or died. Of several engines with
// the type that is for the one that started last. What was registered within store.EngineGone is left, as its engine may not have told yet
// that it lives.
func lostLimits(types []job.TypeInfo, living []store.EngineInfo, id string) []job.TypeInfo {
	self := slices.IndexFunc(living, func(o store.EngineInfo) bool { return o.ID == id })
	if self < 0 {
		return nil
	}
	mine := living[self]
	var lost []job.TypeInfo
	for _, t := range types {
		counts := t.Limit()
		held := t.Registered.After(mine.Seen.Add(-store.EngineGone)) || slices.ContainsFunc(living, func(o store.EngineInfo) bool {
			later := cmp.Or(o.Started.Compare(mine.Started), cmp.Compare(o.ID, mine.ID)) > 0
			return o.Declares(t.Queue, t.Type) && (later || o.Limits[t.Type] == counts)
		})
		if l := mine.Limits[t.Type]; !held && l != counts {
			t.SetLimit(l)
			lost = append(lost, t)
		}
	}
	return lost
}
