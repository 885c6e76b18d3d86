package job_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// What an entry of the log is encoded to is read as what it was.
func TestRunEntryEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEntry(t, 2)
		e.Step, e.By = rapid.Int64().Draw(t, "step"), rapid.String().Draw(t, "by")
		e.Error, e.Stack = rapid.String().Draw(t, "error"), rapid.String().Draw(t, "stack")
		var usual bytes.Buffer
		to := json.NewEncoder(&usual)
		to.SetEscapeHTML(false) // data stay as they are
		if err := to.Encode(e); err != nil {
			t.Fatal(err)
		}
		var got, want job.RunEntry
		id, at := job.ID("of"), time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "at"), 0).UTC()
		if err := got.Decode([]byte(e.Encode()), id, at); err != nil {
			t.Fatalf("%v in %s", err, e.Encode())
		}
		if err := json.Unmarshal(usual.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		want.Job, want.At = id, at
		whose(&want, id)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nis read as %+v\nwant       %+v", e.Encode(), got, want)
		}
	})
}

// Numbers in a context of a message come out of the log as they went in.
func TestRunEntryKeepsNumbers(t *testing.T) {
	const large = "9007199254740993" // 2^53 + 1, which no float64 is
	in := job.RunEntry{Write: []job.Movement{{
		Dir: port.Output, Port: "out", N: 1, Data: []json.RawMessage{json.RawMessage(large)},
		Context: port.Context{"id": json.Number(large)},
	}}}
	var got job.RunEntry
	if err := got.Decode([]byte(in.Encode()), "of", time.Time{}); err != nil {
		t.Fatal(err)
	}
	m := got.Write[0]
	if id, err := port.Encode(m.Context["id"]); err != nil || string(id) != large || string(m.Data[0]) != large {
		t.Errorf("%s is read as %v, data %s (%v)", large, m.Context["id"], m.Data[0], err)
	}
}

// whose gives movements without a job one.
func whose(e *job.RunEntry, id job.ID) {
	for _, m := range slices.Concat(pointers(e.Read), pointers(e.Write)) {
		m.Job = cmp.Or(m.Job, id)
	}
	for _, g := range pointers(e.Groups) {
		whose(g, id)
	}
}

func pointers[T any](all []T) (to []*T) {
	for i := range all {
		to = append(to, &all[i])
	}
	return to
}

func anEntry(t *rapid.T, deep int) (e job.RunEntry) {
	e.Read, e.Write = movements(t), movements(t)
	if deep > 0 {
		e.Groups = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.RunEntry { return anEntry(t, deep-1) }), 0, 2).Draw(t, "groups")
	}
	return e
}

func movements(t *rapid.T) []job.Movement {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.Movement {
		m := job.Movement{
			Job: job.ID(rapid.StringMatching(`([0-9a-f-]{1,8}(\.[0-9])?)?`).Draw(t, "job")), Dir: rapid.SampledFrom([]port.Dir{port.Input, port.Output}).Draw(t, "dir"),
			Port: rapid.StringMatching(`[a-z_]{1,8}`).Draw(t, "port"), From: rapid.Int64Min(0).Draw(t, "from"), N: rapid.IntMin(0).Draw(t, "n"),
		}
		for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{`1`, `"a\u0000<b>"`, `{"a":[1,{}]}`, `null`, `"ä"`, `12345678901234567890`}), 0, 3).Draw(t, "data") {
			m.Data = append(m.Data, json.RawMessage(text))
		}
		if rapid.Bool().Draw(t, "context") {
			m.Context = port.Context{rapid.String().Draw(t, "key"): rapid.String().Draw(t, "value")}
		}
		return m
	}), 0, 3).Draw(t, "movements")
}
