package statemachine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	sm "github.com/weirworks/weir/statemachine"
)

// evalLua runs the preamble and returns its three tables.
func evalLua(t *testing.T) (names, events, settled *lua.LTable) {
	t.Helper()
	state := lua.NewState()
	t.Cleanup(state.Close)
	globals := len(fields(state.G.Global))
	if err := state.DoString(sm.Lua() + "return S, EV, SETTLED"); err != nil {
		t.Fatalf("evaluating the preamble: %v\n%s", err, sm.Lua())
	}
	if got := len(fields(state.G.Global)); got != globals {
		t.Errorf("the preamble made %d globals", got-globals)
	}
	return state.CheckTable(-3), state.CheckTable(-2), state.CheckTable(-1)
}

func fields(table *lua.LTable) map[string]lua.LValue {
	m := map[string]lua.LValue{}
	table.ForEach(func(k, v lua.LValue) { m[k.String()] = v })
	return m
}

func TestLuaSaysTheSame(t *testing.T) {
	t.Parallel()
	names, events, settled := evalLua(t)

	wantNames, wantSettled := map[string]lua.LValue{}, map[string]lua.LValue{}
	for _, s := range sm.Statuses() {
		wantNames[s.String()] = lua.LString(s)
		if s.Settled() {
			wantSettled[s.String()] = lua.LTrue
		}
	}
	if got := fields(names); !maps.Equal(got, wantNames) {
		t.Errorf("S = %v, want %v", got, wantNames)
	}
	if got := fields(settled); !maps.Equal(got, wantSettled) {
		t.Errorf("SETTLED = %v, want %v", got, wantSettled)
	}

	got := map[sm.Transition]bool{}
	for event, moves := range fields(events) {
		for from, to := range fields(moves.(*lua.LTable)) {
			got[sm.Transition{From: sm.Status(from), Event: sm.Event(event), To: sm.Status(to.String())}] = true
		}
	}
	want := map[sm.Transition]bool{}
	for _, move := range sm.Transitions() {
		want[move] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("EV = %v\nwant %v", got, want)
	}
}

func TestLuaIsThreeLocalsOnThreeLines(t *testing.T) {
	t.Parallel()
	text := sm.Lua()
	var locals []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "={")
		locals = append(locals, name)
	}
	if want := []string{"local S", "local EV", "local SETTLED"}; !slices.Equal(locals, want) {
		t.Errorf("lines start with %q, want %q", locals, want)
	}
	if !strings.HasSuffix(text, "\n") {
		t.Error("the preamble runs into the script that follows")
	}
	for range 20 {
		if sm.Lua() != text {
			t.Fatal("the preamble differs between calls")
		}
	}
}
