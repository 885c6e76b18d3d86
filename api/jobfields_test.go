package api_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
)

// unshown are the fields of job.Info that api.JobOf does not show, and why.
var unshown = map[string]string{
	"Args": "where one job is shown", "Graph": "its children say so", "Memo": "of the surface that started the job",
	"Queued": "why tells it", "Steps": "the tree tells it", "Version": "of commits", "Last": "of commits", "Token": "who has it can end the run",
	"Due": "next_at, of a scheduled job", "Crashes": "reason", "Lapses": "reason", "Started": "of the engine", "Woke": "of commits",
	"Joining": "why tells it", "Policy": "of the graph", "MessageTypes": "of patches", "Definition": "of patches", "Single": "why tells it",
	"Blocked": "reason", "InstanceOf": "of the graph", "Retain": "expires_at", "Release": "expires_at", "Ended": "of lists", "Lease": "why tells it",
	"TypeVersion": "reason", "Needs": "reason",
}

// What is known of a job is shown, or is not for a reason.
func TestJobOfShowsAllFields(t *testing.T) {
	t.Parallel()
	shown := func(i *job.Info) string {
		raw, err := json.Marshal(api.JobOf(i))
		enginetest.Check(t, err)
		return string(raw)
	}
	typ, zero := reflect.TypeFor[job.Info](), shown(&job.Info{ID: "a.1"})
	for n := range typ.NumField() {
		i := job.Info{ID: "a.1"}
		name := typ.Field(n).Name
		set(reflect.ValueOf(&i).Elem().Field(n))
		why, left := unshown[name]
		if differs := shown(&i) != zero; differs == left {
			t.Errorf("job.Info.%s: shown %t, but listed as not shown, as %q", name, differs, why)
		}
	}
}

// set gives a value, and all in it, something that is not zero.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") // a trace, and as good as any text elsewhere
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf("value"))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("1"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0)))
			return
		}
		for n := range v.NumField() {
			if v.Field(n).CanSet() {
				set(v.Field(n))
			}
		}
	default:
	}
}
