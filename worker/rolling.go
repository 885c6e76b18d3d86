package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// ArgsUpgrader is a worker with a Version, see job.Versioned, that reads args which older versions wrote. UpgradeArgs
// turns those of version from into those of the next one; it is called for each version in between, before each run of such a
// job. It is called on the registered value, by several runs at once, and only computes: it has no side effects. Its error
// leaves the job to engines that can decode it. Without it args of older versions are read as they are.
type ArgsUpgrader interface {
	UpgradeArgs(from int, args json.RawMessage) (json.RawMessage, error)
}

// StateUpgrader is such a worker that reads state which older versions wrote. UpgradeState changes the job's whole state from
// that of version from into that of the next one, as UpgradeArgs does. The run sees the new state, which is stored when
// a run changes anything in it, with that, in one commit: from then on the job waits for engines of the new version. A state that is
// too large for one commit is for the worker to change, run by run.
type StateUpgrader interface {
	UpgradeState(from int, state map[string]json.RawMessage) error
}

// undecodable is the error of a run that this engine cannot make of what its job holds.
type undecodable struct {
	error
	message bool // it is a message that waits for the job
}

// Unwrap implements errors' interface.
func (u *undecodable) Unwrap() error { return u.error }

// args returns the args of a job as this version reads them.
func (k *kind) args(i *job.Info) (json.RawMessage, error) {
	from, args := i.NeedsOf().Args, i.Args
	up, ok := k.worker.(ArgsUpgrader)
	for ; ok && args != nil && from < k.version; from++ {
		var err error
		if args, err = up.UpgradeArgs(from, args); err != nil {
			return nil, fmt.Errorf("upgrading args of version %d: %w", from, err)
		}
	}
	return args, nil
}

// notDecoded tells whether an error of setting args is one of decoding them, rather than of what they say.
func notDecoded(err error) bool {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	return errors.Is(err, port.ErrEncoding) || errors.Is(err, port.ErrParams) || errors.As(err, &kind) || errors.As(err, &syntax)
}

// upgrade gives a run the state of its job as this version has it. It is stored with the first change of a run.
func (k *kind) upgrade(r *Run) error {
	needs := r.info.NeedsOf()
	if needs.State >= k.version {
		return nil
	}
	next := needs
	next.State, next.Version = k.version, max(needs.Version, k.version)
	if r.info.Args == nil {
		next.Args = k.version
	}
	r.state.needs = &next
	up, ok := k.worker.(StateUpgrader)
	if !ok || r.state.whole && len(r.state.known) == 0 {
		return nil
	}
	before, err := r.state.All()
	if err != nil {
		return err
	}
	after := maps.Clone(before)
	for from := needs.State; from < k.version; from++ {
		if err := up.UpgradeState(from, after); err != nil {
			return &undecodable{error: fmt.Errorf("upgrading state of version %d: %w", from, err)}
		}
	}
	for key, raw := range after {
		if err := errors.Join(job.CheckStateKey(key), port.Check(raw), job.CheckSize("its value", len(raw))); err != nil {
			return &undecodable{error: fmt.Errorf("upgrading state of version %d to %d: key %q: %w", needs.State, k.version, key, err)}
		}
	}
	r.state.upgraded(before, after)
	return nil
}

// upgraded makes a state another one, which is stored when the run changes something in it.
func (s *State) upgraded(before, after map[string]json.RawMessage) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.known, s.whole, s.older = after, true, map[string]json.RawMessage{}
	for key, raw := range after {
		if old, ok := before[key]; !ok || string(old) != string(raw) {
			s.older[key] = raw
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			s.older[key] = nil
		}
	}
}

// newer returns what the job needs after a commit that changes its state, which it stores as a whole if an older version
// wrote it.
func (s *State) newer() *job.Needs {
	if len(s.changed) == 0 {
		return nil
	}
	for key, raw := range s.older {
		if _, ok := s.changed[key]; !ok {
			s.changed[key] = raw
		}
	}
	needs := s.needs
	s.older, s.needs = nil, nil
	return needs
}

// lacking leaves a job to engines that can decode it, as is known of it. One that is to end was given to an engine that
// cannot since none came that can: it ends without its Shutdown.
func (t *turn) lacking(snap *store.Snapshot) *store.Delta {
	t.registry().refuse()
	needs := snap.Info.NeedsOf()
	reason := fmt.Sprintf("no engine that lives can decode it: it needs type %s", needs.Words())
	if needs.Version <= t.registry().kinds[needs.Type].version {
		reason = snap.Info.Reason
	}
	if !snap.Shutdown {
		return handBack(snap, 0, reason)
	}
	return &store.Delta{Job: snap.Info.ID, Token: snap.Token, Outcome: statemachine.Shutdown, Reason: reason + ": it ended without Shutdown"}
}

// refuse leaves a job that cannot be decoded to engines of other builds.
func (t *turn) refuse(snap *store.Snapshot, why *undecodable) *store.Delta {
	t.registry().refuse()
	needs, again := snap.Info.NeedsOf().Refuse(t.registry().build, why.message)
	reason := firstLine(fmt.Sprintf("it waits for an engine that can decode it; one could not: %s", why.Error()))
	if _, told := t.unknown.LoadOrStore(errUndecodable, true); !told {
		log := t.cfg.Logger.With("type", snap.Info.Type, "queue", snap.Info.Queue, "job", snap.Info.ID)
		if !t.cfg.Store.Encodes() {
			log = log.With("error", why)
		}
		log.Warn("a job cannot be decoded here; such jobs wait for engines that can, and say why")
	}
	d := handBack(snap, 0, reason)
	if d.Needs = &needs; again {
		d.Delay = unknownDelay // or engines that cannot would hand it to each other
	}
	return d
}

// errUndecodable is what is noted when the engine has told of such jobs.
var errUndecodable = errors.New("undecodable")

// takes tells whether the engine may run a job, as far as is known.
func (r *registry) takes(i *job.Info) bool { return i.Needs == nil || i.Needs.MetBy(r.withBuild) }

// runs tells so for jobs of a type, which may name what they need besides it.
func (r *registry) runs(typ string) bool {
	if r.kinds[typ] != nil {
		return true
	}
	needs := job.ParseNeeds(typ, "")
	return needs.MetBy(r.withBuild)
}

// refuse notes that the engine was given a job that it cannot decode.
func (r *registry) refuse() { r.asked.Store(&r.withBuild) }

// sealAsks is to be called when all types are registered.
func (r *registry) sealAsks() {
	all := slices.Clone(r.names)
	for _, name := range r.names {
		r.crowds = r.crowds || r.kinds[name].options.MaxRunningHere > 0
		for version := 2; version <= r.kinds[name].version; version++ {
			all = append(all, job.Takes(name, version))
		}
	}
	r.build = r.fingerprint()
	r.withBuild = append(slices.Clone(all), job.Refuses(r.build))
	r.asked.Store(&all)
}

// fingerprint is the same for engines that can run the same: programs built from the same code, with the same types of
// workers and their settings.
func (r *registry) fingerprint() string {
	h := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		_, _ = io.WriteString(h, info.String()) // a hash returns no errors
	}
	if exe, err := os.Executable(); err == nil {
		if file, err := os.Stat(exe); err == nil {
			_, _ = fmt.Fprint(h, file.Size(), file.ModTime().UnixNano())
		}
	}
	for _, name := range r.names {
		k := r.kinds[name]
		_, _ = fmt.Fprintln(h, name, k.version)
		describe(h, k.layout.Type(), map[reflect.Type]bool{})
		if l, ok := k.worker.(Local); ok {
			_, _ = fmt.Fprintf(h, "%q\n", l.Settings())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:5])
}

// describe writes what a type is, with all that it is made of.
func describe(h hash.Hash, t reflect.Type, known map[reflect.Type]bool) {
	_, _ = fmt.Fprintln(h, t.PkgPath(), t)
	if known[t] {
		return
	}
	known[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			_, _ = fmt.Fprintln(h, f.Name, f.Tag)
			describe(h, f.Type, known)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(h, t.Elem(), known)
	case reflect.Map:
		describe(h, t.Key(), known)
		describe(h, t.Elem(), known)
	default:
	}
}
