package component_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/weirworks/weir/component"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	big := "123456789012345678901234567890"
	for _, x := range []example{
		{name: "map", c: &Map{Expr: "it * 2"}, in: stream{"in": list("1 2.5 -3")}, out: stream{"out": list("2 5 -6")}},
		{name: "map nothing", c: &Map{Expr: "it"}, in: stream{"in": nil}, out: stream{}},
		{
			name: "map keeps big integers", c: &Map{Expr: `{"id": it.id, "n": it.n + 1}`},
			in: stream{"in": {`{"id":` + big + `,"n":9007199254740992}`}}, out: stream{"out": {`{"id":` + big + `,"n":9007199254740993}`}},
		},
		{name: "map refuses to round", c: &Map{Expr: `it + 1`}, in: stream{"in": {big}}, fail: "invalid operation: json.Number + int"},
		{name: "map too large a float", c: &Map{Expr: `it`}, in: stream{"in": {"1e999"}}, fail: "too large"},
		{name: "map large float", c: &Map{Expr: `it * 10.0`}, in: stream{"in": {"1e19"}}, out: stream{"out": {"1e+20"}}},
		{name: "map text", c: &Map{Expr: `upper(it.s) + "<&>"`}, in: stream{"in": {`{"s":"ä"}`}}, out: stream{"out": {`"Ä<&>"`}}},
		{name: "map not a number", c: &Map{Expr: `it / 0`}, in: stream{"in": {"0"}}, fail: "NaN"},
		{name: "map groups", c: &Map{Expr: `groupBy(it, # % 2)`}, in: stream{"in": {"[1,2,3]"}}, out: stream{"out": {`{"0":[2],"1":[1,3]}`}}},
		{name: "map skip", c: &Map{Expr: `it.n + 1`, OnError: OnErrorSkip}, in: stream{"in": list(`{"n":1} 7 {"n":2}`)}, out: stream{"out": list("2 3")}},
		{
			name: "map err", c: &Map{Expr: `it + 1`, OnError: OnErrorPort}, in: stream{"in": list(`1 null 2`)},
			out: stream{"out": list("2 3"), "err": {`{"error":"expression \"it + 1\": invalid operation: <nil> + int (line 1, column 4)","data":null}`}},
		},
		{name: "map too large a result", c: &Map{Expr: `repeat("x", 2000000)`}, in: stream{"in": {"1"}}, fail: "a message at most 1048576"},
		{name: "map function", c: &Map{Expr: `now`}, in: stream{"in": {"1"}}, fail: "func() time.Time"},
		{name: "filter", c: &Filter{Expr: "it.n > 1"}, in: stream{"in": list(`{"n":1} {"n":2}`)}, out: stream{"out": {`{"n":2}`}}},
		{name: "filter keeps the text", c: &Filter{Expr: "true"}, in: stream{"in": {big, "1e999x"[:3], "1.50"}}, out: stream{"out": {big, "1e9", "1.50"}}},
		{name: "filter not a condition", c: &Filter{Expr: "it"}, in: stream{"in": {`"yes"`}}, fail: "gives a text, not true or false"},
		{name: "flat_map", c: &FlatMap{}, in: stream{"in": list(`[1,[2],{"a":3}] [] null`)}, out: stream{"out": list(`1 [2] {"a":3}`)}},
		{name: "flat_map expr", c: &FlatMap{Expr: "it.l"}, in: stream{"in": {`{"l":[1,` + big + `]}`}}, out: stream{"out": {"1", big}}},
		{name: "flat_map no list", c: &FlatMap{}, in: stream{"in": {"5"}}, fail: "gives a number, not a list"},
		{
			name: "route", c: &Route{Cases: []Case{{"it < 0", "low"}, {"it < 10", "mid"}, {"it < -5", "never"}}, Default: "high"},
			in: stream{"in": list("5 -7 99 -1 3")}, out: stream{"low": list("-7 -1"), "mid": list("5 3"), "high": list("99")},
		},
		{
			name: "route all", c: &Route{Cases: []Case{{"it > 0", "a"}, {"it > 1", "b"}, {"it > 2", "a"}}, All: true},
			in: stream{"in": list("0 1 3")}, out: stream{"a": list("1 3"), "b": list("3")},
		},
		{
			name: "route err", c: &Route{Cases: []Case{{"it.x > 0", "a"}}, OnError: OnErrorPort}, in: stream{"in": list(`{"x":1} {}`)},
			out: stream{"a": {`{"x":1}`}, "err": {`{"error":"expression \"it.x > 0\": invalid operation: <nil> > int (line 1, column 6)","data":{}}`}},
		},
		{name: "tee", c: &Tee{To: []string{"a", "b"}}, in: stream{"in": list("1 2")}, out: stream{"a": list("1 2"), "b": list("1 2")}},
		{name: "emit", c: &Emit{Items: []json.RawMessage{json.RawMessage("1"), json.RawMessage(`{"a":[]}`)}}, out: stream{"out": list(`1 {"a":[]}`)}},
		{name: "emit nothing", c: &Emit{}, out: stream{}},
	} {
		x.test(t)
	}
}

// TestLargeMessages: what is too long for a key or for the port err.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	text := func(c string, n int) string { return `"` + strings.Repeat(c, n) + `"` }
	long, other := text("x", 5000), text("x", 4999)
	for _, x := range []example{
		{name: "dedupe", c: &Dedupe{}, in: stream{"in": {long, other, long}}, out: stream{"out": {long, other}}},
		{name: "reduce", c: &Reduce{Expr: "(acc ?? 0) + 1", Key: "it"}, in: stream{"in": {long, other, long}}, out: stream{"out": {
			`{"key":` + long + `,"value":2}`, `{"key":` + other + `,"value":1}`,
		}}},
		{name: "join", c: &Join{LeftKey: "it", RightKey: "it"}, in: stream{"left": {long}, "right": {other, long}}, out: stream{"out": {
			`{"key":` + long + `,"left":` + long + `,"right":` + long + `}`,
		}}},
		{
			name: "err", c: &Map{Expr: "it + 1", OnError: OnErrorPort}, in: stream{"in": {text("x", 1<<20-10)}},
			out: stream{"err": {`{"error":"expression \"it + 1\": invalid operation: string + int (line 1, column 4)","data":null}`}},
		},
		{
			name: "long error", c: &Filter{Expr: strings.Repeat("it ?? ", 20) + "it", OnError: OnErrorPort}, in: stream{"in": {"{}"}},
			out: stream{"err": {`{"error":"expression \"` + strings.Repeat("it ?? ", 10) + `…\" gives an object, not true or false","data":{}}`}},
		},
		{name: "batch", c: &Batch{}, in: stream{"in": {text("x", 600_000), text("y", 600_000)}}, out: stream{"out": {"[" + text("x", 600_000) + "]", "[" + text("y", 600_000) + "]"}}},
		{name: "batch of one", c: &Batch{}, in: stream{"in": {text("x", 1<<20-2)}}, fail: "a list of it is larger than"},
		{name: "window", c: &Window{Count: 2}, in: stream{"in": {text("x", 600_000), text("y", 600_000)}}, fail: "a window of 2 messages has 12"},
	} {
		x.test(t)
	}
}

func TestMerges(t *testing.T) {
	t.Parallel()
	for _, x := range []example{
		{name: "merge", c: &Merge{From: []string{"a"}}, in: stream{"in": list("1 2"), "a": list("3")}, out: stream{"out": list("1 3 2")}},
		{name: "merge any port", c: &Merge{}, in: stream{"x": list("1"), "y": list("2 3")}, out: stream{"out": list("1 2 3")}},
		{
			name: "ordered", c: &MergeOrdered{From: []string{"a", "b", "c"}},
			in: stream{"a": list("1 4 6"), "b": list("2"), "c": list("3 5")}, out: stream{"out": list("1 2 3 4 5 6")},
		},
		{name: "ordered nothing", c: &MergeOrdered{From: []string{"a", "b"}}, in: stream{"a": nil, "b": nil}, out: stream{}},
		{
			name: "priority", c: &MergePriority{From: []string{"high", "low"}},
			in: stream{"low": list("1 2"), "high": list("3 4")}, out: stream{"out": list("3 4 1 2")},
		},
		{
			name: "sorted", c: &MergeSorted{From: []string{"a", "b"}, By: "it.k"},
			in:  stream{"a": list(`{"k":1} {"k":3,"a":1} {"k":9}`), "b": list(`{"k":2.5} {"k":3,"b":1} {"k":123456789012345678901}`)},
			out: stream{"out": list(`{"k":1} {"k":2.5} {"k":3,"a":1} {"k":3,"b":1} {"k":9} {"k":123456789012345678901}`)},
		},
		{
			name: "sorted down", c: &MergeSorted{From: []string{"a", "b"}, Descending: true},
			in: stream{"a": list(`"z" "b"`), "b": list(`"y" "a"`)}, out: stream{"out": list(`"z" "y" "b" "a"`)},
		},
		{name: "sorted mixed", c: &MergeSorted{From: []string{"a", "b"}}, in: stream{"a": list("1"), "b": list(`"x"`)}, fail: "cannot order"},
		{name: "zip", c: &Zip{From: []string{"a", "b"}}, in: stream{"a": list("1 2 3"), "b": list(`"x" "y"`)}, out: stream{"out": list(`[1,"x"] [2,"y"]`)}},
		{
			name: "zip pad", c: &Zip{From: []string{"a", "b"}, Rest: RestPad},
			in: stream{"a": list("1 2 3"), "b": list(`"x"`)}, out: stream{"out": list(`[1,"x"] [2,null] [3,null]`)},
		},
		{name: "zip fail", c: &Zip{From: []string{"a", "b"}, Rest: RestFail}, in: stream{"a": list("1 2"), "b": list("1")}, fail: `port "b" is at its end and other ports have 1`},
		{name: "zip nothing", c: &Zip{From: []string{"a", "b"}, Rest: RestFail}, in: stream{"a": nil, "b": nil}, out: stream{}},
		{
			name: "join", c: &Join{LeftKey: "it.id", RightKey: "it.of"},
			in: stream{"left": list(`{"id":1} {"id":2} {"id":null}`), "right": list(`{"of":2,"n":1} {"of":3} {"of":2,"n":2} {}`)},
			out: stream{"out": list(
				`{"key":2,"left":{"id":2},"right":{"of":2,"n":1}} {"key":2,"left":{"id":2},"right":{"of":2,"n":2}}`)},
		},
		{
			name: "join outer", c: &Join{LeftKey: "it", RightKey: "it", Kind: JoinOuter},
			in: stream{"left": list(`1 2`), "right": list(`2.0 3 null`)},
			out: stream{"out": list(
				`{"key":2,"left":2,"right":2.0} {"key":3,"left":null,"right":3} {"key":null,"left":null,"right":null} {"key":1,"left":1,"right":null}`)},
		},
		{name: "join max_rows", c: &Join{LeftKey: "it", RightKey: "it", MaxRows: 2}, in: stream{"left": list("1 2 3")}, fail: "2 messages wait for partners, and max_rows allows no more"},
		{name: "join bad key", c: &Join{LeftKey: "it.a.b", RightKey: "it"}, in: stream{"left": list("{}"), "right": nil}, fail: "cannot fetch b"},
	} {
		x.test(t)
	}
}

func TestFolds(t *testing.T) {
	t.Parallel()
	for _, x := range []example{
		{name: "batch", c: &Batch{Size: 2}, in: stream{"in": list("1 2 3")}, out: stream{"out": list("[1,2] [3]")}},
		{name: "batch nothing", c: &Batch{}, in: stream{"in": nil}, out: stream{}},
		{name: "collect", c: &Collect{}, in: stream{"in": list(`1 {"a":2} 3`)}, out: stream{"out": list(`[1,{"a":2},3]`)}},
		{name: "collect nothing", c: &Collect{}, in: stream{"in": nil}, out: stream{"out": list(`[]`)}},
		{name: "collect max_items", c: &Collect{MaxItems: 1}, in: stream{"in": list(`1 2`)}, fail: "more than 1 messages, and max_items allows no more"},
		{name: "collect too large", c: &Collect{}, in: stream{"in": {`"` + strings.Repeat("x", 600_000) + `"`, `"` + strings.Repeat("y", 600_000) + `"`}}, fail: "a message has at most 1048576"},
		{name: "reduce", c: &Reduce{Expr: "acc + it", Seed: json.RawMessage("10")}, in: stream{"in": list("1 2")}, out: stream{"out": list("13")}},
		{name: "reduce nothing", c: &Reduce{Expr: "acc + it", Seed: json.RawMessage("0")}, in: stream{"in": nil}, out: stream{"out": list("0")}},
		{name: "reduce each", c: &Reduce{Expr: "(acc ?? 0) + it", Emit: EmitEach}, in: stream{"in": list("1 2 3")}, out: stream{"out": list("1 3 6")}},
		{
			name: "reduce keys", c: &Reduce{Expr: "acc + it.n", Seed: json.RawMessage("0"), Key: "it.k"},
			in:  stream{"in": list(`{"k":"b","n":1} {"k":"a","n":2} {"k":"b","n":3} {"k":null,"n":4}`)},
			out: stream{"out": list(`{"key":"b","value":4} {"key":"a","value":2} {"key":null,"value":4}`)},
		},
		{
			name: "reduce a faulty first message of a key", c: &Reduce{Expr: "acc + it.n", Seed: json.RawMessage("0"), Key: "it.k", OnError: OnErrorSkip},
			in: stream{"in": list(`{"k":1,"n":"x"} {"k":2,"n":1} {"k":1,"n":1}`)}, out: stream{"out": list(`{"key":2,"value":1} {"key":1,"value":1}`)},
		},
		{name: "reduce keys nothing", c: &Reduce{Expr: "acc", Key: "it"}, in: stream{"in": nil}, out: stream{}},
		{name: "reduce max_keys", c: &Reduce{Expr: "1", Key: "it", MaxKeys: 2}, in: stream{"in": list("1 2 1 3")}, fail: "more than 2 keys, and max_keys allows no more"},
		{name: "dedupe", c: &Dedupe{}, in: stream{"in": list(`1 {"a":1,"b":2} 1 {"b":2,"a":1} 1.0 2`)}, out: stream{"out": list(`1 {"a":1,"b":2} 2`)}},
		{name: "dedupe forgets", c: &Dedupe{Capacity: 2, Key: "it % 10"}, in: stream{"in": list(`1 2 11 3 12 21 4`)}, out: stream{"out": list(`1 2 3 21 4`)}},
		{name: "dedupe skip", c: &Dedupe{Key: "it.a.b", OnError: OnErrorSkip}, in: stream{"in": list(`1 {"a":{"b":1}}`)}, out: stream{"out": list(`{"a":{"b":1}}`)}},
	} {
		x.test(t)
	}
}
