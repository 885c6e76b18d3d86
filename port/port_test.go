package port_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/port"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "_", "In_Box2", "0", strings.Repeat("x", port.MaxName)} {
		if err := port.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
	long := strings.Repeat("x", port.MaxName+1)
	for _, name := range []string{"", "a b", "a-b", "é", "a\n", "\xff", "a\x00", port.Any, "{a}", long} {
		err := port.CheckName(name)
		if !errors.Is(err, port.ErrName) {
			t.Errorf("CheckName(%q) = %v, want ErrName", name, err)
		}
	}
	if err := port.CheckName(long); strings.Contains(err.Error(), long) || !strings.Contains(err.Error(), "129 bytes") {
		t.Errorf("CheckName(long) = %v: want the name cut and its length", err)
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	for d, want := range map[port.Dir]string{port.Input: "in", port.Output: "out", 7: "Dir(7)"} {
		if got := d.String(); got != want {
			t.Errorf("Dir(%d).String() = %q, want %q", byte(d), got, want)
		}
	}
	var d port.Dir
	if err := json.Unmarshal([]byte(`"sideways"`), &d); err == nil || !strings.Contains(err.Error(), `"sideways"`) {
		t.Errorf("unmarshaling a wrong direction: %v", err)
	}
	if _, err := json.Marshal(port.Dir(7)); err == nil {
		t.Error("marshaling a wrong direction: no error")
	}
}

func TestSpecJSON(t *testing.T) {
	t.Parallel()
	const want = `{"name":"width","dir":"in","default":640,"limit":3,"type":"int"}`
	var spec port.Spec
	if err := json.Unmarshal([]byte(want), &spec); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(spec)
	if err != nil || string(got) != want {
		t.Errorf("round trip: %s, %v, want %s", got, err, want)
	}
	if got, _ := json.Marshal(port.Spec{Name: "a", Dir: port.Output}); string(got) != `{"name":"a","dir":"out"}` {
		t.Errorf("a short spec: %s", got)
	}
}

func TestSpecValidate(t *testing.T) {
	t.Parallel()
	one := json.RawMessage(`1`)
	tests := map[string]struct {
		spec port.Spec
		want []string // in the error; none for a valid spec
	}{
		"input":          {spec: port.Spec{Name: "a", Dir: port.Input, Default: one, Limit: 9, Type: "int"}},
		"output":         {spec: port.Spec{Name: "a", Dir: port.Output}},
		"any":            {spec: port.Spec{Name: port.Any, Dir: port.Input, Default: one}},
		"name":           {port.Spec{Name: "a b", Dir: port.Input}, []string{`"a b"`, "letters, digits"}},
		"direction":      {port.Spec{Name: "a"}, []string{"Dir(0)"}},
		"limit":          {port.Spec{Name: "a", Dir: port.Input, Limit: -1}, []string{"-1"}},
		"default":        {port.Spec{Name: "a", Dir: port.Input, Default: json.RawMessage(`{`)}, []string{"default"}},
		"empty default":  {port.Spec{Name: "a", Dir: port.Input, Default: json.RawMessage{}}, []string{"default"}},
		"output default": {port.Spec{Name: "a", Dir: port.Output, Default: json.RawMessage(`{`)}, []string{"default"}},
		"all at once":    {port.Spec{Name: "-", Limit: -2}, []string{`"-"`, "Dir(0)", "-2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantError(t, test.spec.Validate(), test.want...)
		})
	}
}

// wantError checks that err is nil when no text is wanted, and otherwise that it
// holds all of them.
func wantError(t *testing.T, err error, want ...string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("no error, want one with %q", want)
		return
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q\nlacks %q", err, text)
		}
	}
}
