package worker_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// These tests go over the fields of store.Delta, so that one which is added is told where it was forgotten. CONTRIBUTING.md has the
// recipe.

// sample sets a field of a delta to what a run of a job with the ports in and out might commit, different for each n. A field that
// is not named here gets something of its kind.
func sample(t *testing.T, d *store.Delta, name string, n int) {
	t.Helper()
	text := string(rune('a' + n))
	switch name {
	case "Takes":
		d.Takes = []store.Take{{Dir: port.Input, Port: []string{"in", "more"}[n], N: 1}}
	case "Writes":
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: []json.RawMessage{json.RawMessage(`"` + text + `"`)}}}
	case "Outcome":
		d.Outcome = statemachine.Requeue
	case "Spawns":
		d.Spawns = []store.Spawn{{Base: n + 1, Plan: &job.Plan{Nodes: []job.Node{{Name: text, Type: "T"}}}}}
	case "Launches":
		d.Launches = []*store.Launch{{}}
	default:
		something(t, reflect.ValueOf(d).Elem().FieldByName(name), n)
	}
}

// something is a value other than zero.
func something(t *testing.T, v reflect.Value, n int) {
	t.Helper()
	text := string(rune('a' + n))
	switch v.Kind() {
	case reflect.String:
		v.SetString(`"` + text + `"`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(time.Hour) + int64(n))
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(uint64('1' + n)) //nolint:gosec // n is 0 or 1
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() != reflect.Struct { // one of zero values differs from none
			something(t, v.Elem(), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			something(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		something(t, v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		something(t, key, n)
		something(t, value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		t.Fatalf("sample cannot make a %s: give the field a case there", v.Type())
	}
}

// deltaFields are the names of the fields of store.Delta.
func deltaFields() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Delta]()) {
		names = append(names, f.Name)
	}
	return names
}

// ofTheLast are the fields of which a commit of several runs has only what the last run set, and why that is right.
var ofTheLast = map[string]string{
	"Outcome": "the last run says how it goes on",
	"Reason":  "it is why the job waits after the last run",
	"Delay":   "only runs that fail or are handed back have one: they are committed by themselves",
	"Repeat":  "only a run that completes has one, and nothing follows it",
	"Next":    "only a Checkpoint has one: it is a commit of its own",
	"Lease":   "only a Checkpoint has one: it is a commit of its own",
	"Leads":   "only a Checkpoint has it: it is a commit of its own",
	"Started": "only a Checkpoint has it: it is a commit of its own",
	"Idle":    "a run that read nothing is not batched",
	"Before":  "newRan never gets a delta that has some",
}

// What a run commits is not lost when another run of its job follows it in one commit.
func TestBatchLosesNoField(t *testing.T) {
	t.Parallel()
	for _, name := range deltaFields() {
		first, next := store.Delta{Job: "j", Outcome: statemachine.Requeue}, store.Delta{Job: "j", Outcome: statemachine.Requeue}
		sample(t, &first, name, 0)
		if !worker.Plain(&first) || ofTheLast[name] != "" { // not plain: nothing follows such a run
			continue
		}
		if name == "Speculation" { // all runs of a job have it, or none
			sample(t, &next, name, 1)
		}
		sum := worker.Merged(first, next)
		if !has(sum, name, first) {
			t.Errorf("store.Delta.%s of a run is lost if another run follows in the same commit: merge it in (*ran).add (worker/batch.go); or let "+
				"modest (worker/chain.go) keep such runs out of batches; or say in ofTheLast why only that of the last run counts", name)
		}
		field := reflect.ValueOf(first).FieldByName(name)
		if kind := field.Kind(); kind != reflect.Slice && kind != reflect.Map {
			continue
		}
		sample(t, &next, name, 1)
		if sum = worker.Merged(first, next); !has(sum, name, first) || !has(sum, name, next) {
			t.Errorf("store.Delta.%s of two runs in one commit is %+v: it lacks some of them, merge it in (*ran).add (worker/batch.go)",
				name, reflect.ValueOf(sum).FieldByName(name))
		}
	}
}

// has tells whether a commit has all that a delta of it has in a field: in one of the parts, if parts have that field.
func has(sum store.Delta, name string, d store.Delta) bool {
	want := reflect.ValueOf(d).FieldByName(name)
	var all []reflect.Value
	if _, ok := reflect.TypeFor[store.Part]().FieldByName(name); ok {
		for _, p := range sum.Parts() {
			all = append(all, reflect.ValueOf(p).FieldByName(name))
		}
	} else {
		all = append(all, reflect.ValueOf(sum).FieldByName(name))
	}
	return slices.ContainsFunc(all, func(got reflect.Value) bool {
		switch want.Kind() {
		case reflect.Slice:
			for i := range got.Len() {
				if reflect.DeepEqual(got.Index(i).Interface(), want.Index(0).Interface()) {
					return true
				}
			}
			return false
		case reflect.Map:
			key := want.MapKeys()[0]
			return got.MapIndex(key).IsValid() && reflect.DeepEqual(got.MapIndex(key).Interface(), want.MapIndex(key).Interface())
		}
		return !got.IsZero()
	})
}

// seenAnew are the fields of a job that its next run finds changed by how it begins, or by being committed.
var seenAnew = []string{"Status", "Token", "Version", "Last", "Ran", "Queued", "Due", "Lease"}

// The snapshot that an engine predicts after a run is what the next run sees, whatever field of the commit the run set.
func TestPredictionCarriesEveryField(t *testing.T) {
	onRedis(t).predicts()
}

func (b *bench) predicts() {
	b.Helper()
	plan := &job.Plan{Nodes: []job.Node{{Type: "T", Ports: []job.Port{
		{Spec: port.Spec{Name: "in", Dir: port.Input}}, {Spec: port.Spec{Name: "out", Dir: port.Output}},
	}}}}
	for _, name := range deltaFields() {
		d := store.Delta{}
		sample(b.T, &d, name, 0)
		if slices.Contains([]string{"Repeat", "Next", "Speculation", "Before"}, name) || !worker.Plain(&d) {
			continue // of other outcomes; of runs that begin with their commit; of several runs; nothing is predicted
		}
		h := b.Start(plan)
		b.Check(h.Write(b.Ctx, "in", 1))
		begin := func() *store.Snapshot {
			s, err := b.Store.Begin(b.Ctx, h.ID(), store.Begin{Token: job.RunToken("e"), Lease: time.Hour, Batch: 9, Bytes: 1000})
			b.Check(err)
			return s
		}
		s := begin()
		d.Job, d.Token, d.Outcome = h.ID(), s.Token, statemachine.Requeue
		want := worker.Predicted(s, d)
		all, err := b.Store.Commit(b.Ctx, []store.Tx{{Deltas: []store.Delta{d}}})
		b.Check(err)
		if all[0].Refused != nil {
			b.Fatalf("a commit with store.Delta.%s is refused: give it a case in sample: %v", name, all[0].Refused)
		}
		differ(b, name, want, begin())
	}
}

// differ compares what was predicted of a job after a commit with what its next run sees.
func differ(b *bench, name string, want, got *store.Snapshot) {
	b.Helper()
	w, g := reflect.ValueOf(want.Info), reflect.ValueOf(got.Info)
	for _, f := range reflect.VisibleFields(w.Type()) {
		if f.Name == "Ports" || slices.Contains(seenAnew, f.Name) {
			continue // of ports it is counted while the run reads and writes
		}
		if x, y := w.FieldByIndex(f.Index).Interface(), g.FieldByIndex(f.Index).Interface(); !reflect.DeepEqual(x, y) {
			b.Errorf("after a commit with store.Delta.%s the next run finds %s %+v, but in chains and batches %+v: carry it in (*ran).behind (worker/chain.go)",
				name, f.Name, y, x)
		}
	}
	if want.Loop != got.Loop || want.Touched != got.Touched || !reflect.DeepEqual(want.Defaults, got.Defaults) {
		b.Errorf("after a commit with store.Delta.%s the next run sees %+v, but in chains and batches %+v: carry it in (*ran).behind (worker/chain.go)",
			name, got, want)
	}
}
