package port_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/port"
)

func TestParams(t *testing.T) {
	t.Parallel()
	layout := describe[resize](t)
	w := &resize{ID: 7, Format: "<b>", Count: 1 << 60, Every: time.Second, private: map[string]int{}, Cache: make(chan int)}
	wantError(t, layout.Bind(w, queues{}))
	raw, err := layout.Params(w)
	const want = `{"ID":7,"format":"<b>","every":1000000000,"count":"1152921504606846976"}`
	if err != nil || string(raw) != want {
		t.Fatalf("Params = %s, %v, want %s", raw, err, want)
	}
	again := layout.New().(*resize)
	wantError(t, layout.SetParams(again, raw))
	if again.ID != 7 || again.Format != "<b>" || again.Count != 1<<60 || again.Every != time.Second {
		t.Errorf("came back as %+v", again)
	}
}

func TestParamsNone(t *testing.T) {
	t.Parallel()
	layout, w := describe[pipe[int]](t), new(pipe[int])
	if raw, err := layout.Params(w); raw != nil || err != nil {
		t.Errorf("Params = %s, %v, want nil", raw, err)
	}
	for _, raw := range []string{``, `null`, `{}`} {
		wantError(t, layout.SetParams(w, json.RawMessage(raw)))
	}
	wantError(t, layout.SetParams(w, json.RawMessage(`{"a":1}`)), `"a"`, "there are none")
}

func TestParamsDash(t *testing.T) {
	t.Parallel()
	type worker struct {
		A int `json:"-,"` //nolint:staticcheck // the odd tag is what is tested
		B int `json:"-"`
	}
	raw, err := describe[worker](t).Params(&worker{1, 2})
	if err != nil || string(raw) != `{"-":1}` {
		t.Errorf("Params = %s, %v", raw, err)
	}
}

func TestParamsTimeIsOneArgument(t *testing.T) {
	t.Parallel()
	type worker struct{ time.Time }
	layout := describe[worker](t)
	w := worker{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	raw, err := layout.Params(&w)
	if err != nil || string(raw) != `{"Time":"2026-01-02T03:04:05Z"}` {
		t.Fatalf("Params = %s, %v", raw, err)
	}
	var again worker
	wantError(t, layout.SetParams(&again, raw))
	if !again.Equal(w.Time) {
		t.Errorf("came back as %v", again)
	}
}

func TestParamsRefuses(t *testing.T) {
	t.Parallel()
	_, err := describe[resize](t).Params(&resize{Format: "\xff"})
	if !errors.Is(err, port.ErrEncoding) {
		t.Errorf("Params = %v, want ErrEncoding", err)
	}
	wantError(t, err, "port_test.resize", "at format:", "UTF-8")
}

func TestSetParams(t *testing.T) {
	t.Parallel()
	layout := describe[resize](t)
	w := &resize{ID: 1, Format: "png"}
	wantError(t, layout.SetParams(w, nil))
	wantError(t, layout.SetParams(w, json.RawMessage(`null`)))
	wantError(t, layout.SetParams(w, json.RawMessage(`{"ID":2,"note":"n"}`)))
	if w.ID != 2 || w.Format != "png" || w.Note != "n" {
		t.Errorf("got %+v", w)
	}
	tests := map[string][]string{
		`{"ID":3,"formt":"x"}`:  {"port_test.resize", `"formt"`, `did you mean "format"?`},
		`{"id":3}`:              {`did you mean "ID"?`},
		`{"Cache":3}`:           {`"Cache"`, "use one of: ID, format"},
		`{"in":3}`:              {"no argument"},
		`{"ID":3,"format":4}`:   {"port_test.resize", ".format"},
		`[1]`:                   {"an object of arguments of port_test.resize", "[1]"},
		`{"ID":3`:               {`{"ID":3`},
		`{"ID":3}{}`:            {"after top-level value"},
		`{"ID":3,"note":"\ud8"`: {"arguments"},
		`{"note":"\ud800"}`:     {`\ud800`},
	}
	for raw, want := range tests {
		wantError(t, layout.SetParams(w, json.RawMessage(raw)), want...)
		if w.ID != 2 {
			t.Fatalf("%s changed the struct in spite of the error", raw)
		}
	}
}

func TestParamsRoundTrip(t *testing.T) {
	t.Parallel()
	type worker struct {
		In port.In[int]
		S  string            `json:"s,omitempty"`
		N  int64             `json:",string"`
		M  map[string][]bool `json:"m"`
		P  *uint64
		V  any
		Plain
		Out port.Out[int]
	}
	layout := describe[*worker](t)
	rapid.Check(t, func(t *rapid.T) {
		want := &worker{
			S:     rapid.String().Draw(t, "S"),
			N:     rapid.Int64().Draw(t, "N"),
			M:     rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Bool())).Draw(t, "M"),
			P:     rapid.Ptr(rapid.Uint64(), true).Draw(t, "P"),
			V:     value(2).Draw(t, "V"),
			Plain: Plain{A: rapid.Int().Draw(t, "A")},
		}
		raw, err := layout.Params(want)
		if err != nil {
			t.Fatal(err)
		}
		got := layout.New().(*worker)
		if err := layout.SetParams(got, raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s came back as %+v, %v, was %+v", raw, got, err, want)
		}
	})
}
