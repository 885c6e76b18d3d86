package component_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/weirtest"
)

// TestExpressions: what expressions do with values, and what they refuse.
func TestExpressions(t *testing.T) {
	t.Parallel()
	const it = `{"n":3,"f":2.5,"s":"abc","big":123456789012345678901,"l":[1,2,3],"o":{"b":1,"a":2}}`
	for source, want := range map[string]string{
		`it.n + 1`:                            `4`,
		`it.n / 2`:                            `1.5`,
		`it.n % 2`:                            `1`,
		`it.f * 2`:                            `5`,
		`9007199254740993 + it.n`:             `9007199254740996`,
		`[it.big, it.big == it.big]`:          `[123456789012345678901,true]`,
		`string(it.big)`:                      `"123456789012345678901"`,
		`it.big * 2`:                          `! invalid operation: json.Number * int`,
		`it.big > 5`:                          `! invalid operation: json.Number > int`,
		`it.missing`:                          `null`,
		`it.missing.x`:                        `! cannot fetch x from <nil>`,
		`it.missing?.x ?? "none"`:             `"none"`,
		`filter(it.l, # > 1)`:                 `[2,3]`,
		`it.l | map(# * 2) | sum()`:           `12`,
		`reduce(it.l, #acc + #, 0)`:           `6`,
		`groupBy(it.l, # % 2)[1]`:             `[1,3]`,
		`keys(it.o)`:                          `["a","b"]`,
		`values(it.o)`:                        `[2,1]`,
		`toPairs(it.o)`:                       `[["a",2],["b",1]]`,
		`keys(it.l)`:                          `! a list is no object`,
		`fromJSON('[123456789012345678901]')`: `[123456789012345678901]`,
		`fromJSON('[')`:                       `! wrong encoding`,
		`toJSON(it.o)`:                        `"{\"a\":2,\"b\":1}"`,
		`join(["a", "b"], "-")`:               `"a-b"`,
		`join(it.l)`:                          `! join needs texts, not a number`,
		`replace("aXa", "a", "b")`:            `"bXb"`,
		`replace("aXa", "a", "b", 1)`:         `"bXa"`,
		`repeat("ab", 2)`:                     `"abab"`,
		`now().Year()`:                        `2026`,
		`it.n in [1, 3]`:                      `true`,
		`it in ["a"]`:                         `! not assignable`,
		`let x = it.n; x * x`:                 `9`,
		`repeat("x", 100000000)`:              `! too large`,
		`replace(repeat("x", 100000), "", repeat("x", 100000))`: `! too large`,
		`join(map(1..100000, repeat("x", 100)))`:                `! too large`,
		`reduce(1..100, #acc + #acc, "xx")`:                     `! more than 4194304 bytes`,
		`let a = 1..10000; all(a, all(a, true))`:                `! more than 1048576 steps`,
		`1..10000000`:                                           `! memory budget exceeded`,
		`let a = [1,1,1,1]; let b = [a,a,a,a]; let c = [b,b,b,b]; let d = [c,c,c,c]; let e = [d,d,d,d]; let f = [e,e,e,e]; let g = [f,f,f,f]; let h = [g,g,g,g]; let i = [h,h,h,h]; let j = [i,i,i,i]; [j,j,j,j]`: `! too large`,
	} {
		c := &Map{Expr: source, OnError: OnErrorPort}
		got, failure := play(t, c, stream{"in": {it}})
		switch text, fails := strings.CutPrefix(want, "! "); {
		case fails && (len(got["err"]) != 1 || !strings.Contains(got["err"][0], text)):
			t.Errorf("%s: got %v, want the error %q", source, got, text)
		case !fails && (len(got["out"]) != 1 || got["out"][0] != want):
			t.Errorf("%s: got %v %s, want %s", source, got, failure, want)
		}
	}
}

// FuzzExpr: no expression panics, or makes what is not a message.
func FuzzExpr(f *testing.F) {
	for _, source := range []string{
		"it.a + 1", `filter(it.l, # > 1) | map({"x": #})`, `"a" + it.s matches "b"`, "[1,2][it.a]", "it?.b ?? now()", `let x = it; x.l[-1:]`, "{1: 2}", "-it.a ** 2",
	} {
		f.Add(source, `{"a":1,"l":[1,2.5,"x"],"s":"ß"}`)
	}
	f.Fuzz(func(t *testing.T, source, it string) {
		source = source[:min(len(source), 200)]
		raw, err := Evaluate(source, json.RawMessage(it))
		if err == nil && !json.Valid(raw) {
			t.Errorf("%s of %s gives %s", source, it, raw)
		}
	})
}

// BenchmarkMap measures the way of a message through decoding, an expression, encoding.
func BenchmarkMap(b *testing.B) {
	it := json.RawMessage(`{"id":17,"name":"weir","tags":["a","b"],"price":2.5}`)
	for b.Loop() {
		if _, err := Evaluate(`{"id": it.id, "total": it.price * 3}`, it); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun measures messages through a whole job on the embedded Redis.
func BenchmarkRun(b *testing.B) {
	e := weirtest.New(b, &Map{})
	h := e.StartWorker(&Map{Expr: "it.id + 1"})
	var in []any
	for i := range 1000 {
		in = append(in, map[string]any{"id": i, "name": "weir"})
	}
	for b.Loop() {
		b.StopTimer()
		e.Feed(h, "in", in...)
		b.StartTimer()
		e.RunUntilIdle()
		b.StopTimer()
		outputs(b, h, "out")
		b.StartTimer()
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
