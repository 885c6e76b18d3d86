package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// badNames are none anywhere: of types, queues, aliases, ports, channels, labels or children.
var badNames = []string{
	" ", "a b", " a", "a ", "a\n", "\ta", "a\x00", "\x00", "a\x1f", "\x02", "é", "名", "a\u202e", "\ufeffa", "\xff", "a\xc3", "\xed\xa0\x80",
	"a{b}", "{x}", "a*", "a?", "[a]", "a\\b", "a\"b", "a'b", "a$b", "a%00", "a;b", "a|b", "a~", "a#b", "a,b", "a=b", "a@b", "a+b", "a&b", "a<b>", "a(b)", "a^",
	strings.Repeat("a", 600),
}

// badValues are none that JSON carries unharmed.
var badValues = map[string]any{
	"NaN": math.NaN(), "infinity": math.Inf(1), "minus infinity": math.Inf(-1), "a NaN within": map[string]any{"a": []float64{1, math.NaN()}},
	"a function": func() {}, "a channel": make(chan int), "a complex number": complex(1, 2),
	"a byte": "\xff", "half a rune": "a\xc3", "a surrogate in UTF-8": "\xed\xa0\x80", "a bad key": map[string]int{"\xff": 1}, "a bad text within": []any{[]string{"\xfe"}},
	"nothing": json.RawMessage(""), "a blank": json.RawMessage(" "), "a NUL": json.RawMessage("\x00"), "half a word": json.RawMessage("nul"),
	"two values": json.RawMessage("1 2"), "a BOM": json.RawMessage("\xef\xbb\xbf1"), "a high surrogate": json.RawMessage(`"\ud800"`),
	"a low surrogate": json.RawMessage(`"\udc00x"`), "surrogates the wrong way round": json.RawMessage(`"\udc00\ud800"`), "raw invalid UTF-8": json.RawMessage("\"\xff\""),
	"a raw NUL in a text": json.RawMessage("\"\x00\""), "a raw newline in a text": json.RawMessage("\"\n\""), "byte 1": json.RawMessage("\x01{}\n1"), "byte 2": json.RawMessage("\x02AAAA"),
	"a leading zero": json.RawMessage("01"), "a plus": json.RawMessage("+1"), "no digit before the point": json.RawMessage(".5"), "none behind it": json.RawMessage("1."),
	"hexadecimal": json.RawMessage("0x1"), "raw NaN": json.RawMessage("NaN"), "single quotes": json.RawMessage("'a'"), "a comma too many": json.RawMessage(`[1,]`),
	"a key without quotes": json.RawMessage(`{a:1}`), "an open list": json.RawMessage(`[1`), "an open text": json.RawMessage(`"a`), "a comment": json.RawMessage("1//"),
	"depth 10,001":    json.RawMessage(strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)),
	"a byte too many": strings.Repeat("x", job.MaxMessage-1),
}

// badIDs are neither a job's ID, nor the beginning of one, nor an alias.
var badIDs = []string{
	"", " ", "0", "abc", "x x", "*", "../x", "\x00", "\xff", "é", "{}", "01a1ffcd-8328-72a1-a3d0-059accb38402x", "01A1FFCD-8328-72A1-A3D0-059ACCB38402",
	"01a1ffcd832872a1a3d0059accb38402", "{01a1ffcd-8328-72a1-a3d0-059accb38402}", "01a1ffcd-8328-72a1-a3d0-059accb38402.", "01a1ffcd-8328-72a1-a3d0-059accb38402.0",
	"01a1ffcd-8328-72a1-a3d0-059accb38402.-1", "01a1ffcd-8328-72a1-a3d0-059accb38402.01", "01a1ffcd-8328-72a1-a3d0-059accb38402.1.2",
	"01a1ffcd-8328-72a1-a3d0-059accb38402.99999999999999999999", "01a1ffcd-8328-72a1-a3d0-059accb38402.1e3", "01a1ffcd-8328-72a1-a3d0-059accb38402 .1",
	"01a1ffcd-8328-72a1-a3d0-059accb38402:1", "zzzz", "ffff", strings.Repeat("a", 1000), strings.Repeat("9", 10_000),
}

// kinds are what callers tell apart.
var kinds = []error{job.ErrName, job.ErrPort, job.ErrTooLarge, job.ErrNotFound, job.ErrID, job.ErrConfig, job.ErrUnknownType, port.ErrName, port.ErrEncoding}

// badInput is a namespace with a job, and how many bad inputs it was given.
type badInput struct {
	*env
	client *client.Client
	job    *client.Handle
	tried  int
}

// refuses wants an error of a kind, in one line of reasonable length, that names the thing.
func (b *badInput) refuses(entry, what, names string, try func(ctx context.Context) error) {
	b.Helper()
	b.tried++
	defer func() {
		if v := recover(); v != nil {
			b.Errorf("%s with %.60q panics: %v", entry, what, v)
		}
	}()
	err := try(b.Context())
	if err == nil {
		b.Errorf("%s with %.60q is taken", entry, what)
		return
	}
	known := false
	for _, k := range kinds {
		known = known || errors.Is(err, k)
	}
	text := err.Error()
	if !known || strings.ContainsAny(text, "\r\n\x00") || len(text) > 2000 || !strings.Contains(text, names) {
		b.Errorf("%s with %.60q: the error is of no kind, has no bounds, or does not name %q: %.300q", entry, what, names, text)
	}
}

// Bad input is an error that names the thing, wherever it comes in, and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	client := client.New(e.store)
	e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: "default"}}))
	h, err := client.Start(e.Context(), planner{job.Node{Type: "T", Ports: ports(in("in"), out("out"))}})
	e.Check(err)
	b := &badInput{env: e, client: client, job: h}
	e.unchanged("bad input", func() {
		b.names()
		b.values()
		for _, id := range badIDs {
			b.refuses("Find", id, "", func(ctx context.Context) error { _, err := client.Find(ctx, id); return err })
			b.refuses("ParseID", id, "", func(context.Context) error { _, err := job.ParseID(id); return err })
		}
		b.sizes()
	})
	if b.tried < 300 {
		e.Errorf("only %d bad inputs were tried", b.tried)
	}
	e.Logf("%d bad inputs", b.tried)
}

// names tries bad names wherever there are names.
func (b *badInput) names() {
	b.Helper()
	start := func(ctx context.Context, n job.Node, o ...job.Option) error {
		_, err := b.client.Start(ctx, planner{n}, o...)
		return err
	}
	create := func(ctx context.Context, n job.New) error {
		_, err := b.client.Create(ctx, n)
		return err
	}
	for names, entries := range map[string]map[string]func(ctx context.Context, bad string) error{
		"type": {
			"Start":  func(ctx context.Context, bad string) error { return start(ctx, job.Node{Type: bad}) },
			"Create": func(ctx context.Context, bad string) error { return create(ctx, job.New{Type: bad}) },
		},
		"queue": {
			"Start":  func(ctx context.Context, bad string) error { return start(ctx, job.Node{Type: "T", Queue: bad}) },
			"Create": func(ctx context.Context, bad string) error { return create(ctx, job.New{Type: "T", Queue: bad}) },
		},
		"alias": {
			"Alias":    func(ctx context.Context, bad string) error { return start(ctx, job.Node{Type: "T"}, job.Alias(bad)) },
			"Create":   func(ctx context.Context, bad string) error { return create(ctx, job.New{Type: "T", Alias: bad}) },
			"AddAlias": func(ctx context.Context, bad string) error { return b.job.AddAlias(ctx, bad) },
		},
		"name": {
			"Start": func(ctx context.Context, bad string) error { return start(ctx, job.Node{Type: "T", Name: bad}) },
			"Create": func(ctx context.Context, bad string) error {
				return create(ctx, job.New{Type: "T", Parent: b.job.ID(), Name: bad})
			},
			"Adopt": func(ctx context.Context, bad string) error { return b.job.Adopt(ctx, b.job, bad) },
		},
		"label": {
			"Label": func(ctx context.Context, bad string) error {
				return start(ctx, job.Node{Type: "T"}, job.Label(bad, "x"))
			},
			"Create": func(ctx context.Context, bad string) error {
				return create(ctx, job.New{Type: "T", Labels: map[string]string{bad: "x"}})
			},
		},
		"port": {
			"Write":    func(ctx context.Context, bad string) error { return b.job.Write(ctx, bad, 1) },
			"WriteOut": func(ctx context.Context, bad string) error { return b.job.WriteOut(ctx, bad, 1) },
			"Close":    func(ctx context.Context, bad string) error { return b.job.Close(ctx, bad) },
			"Peek":     func(ctx context.Context, bad string) error { _, err := b.job.Peek(ctx, bad, 1); return err },
			"Take": func(ctx context.Context, bad string) error {
				_, err := b.job.Take(ctx, port.Output, bad, 1)
				return err
			},
			"SetDefault": func(ctx context.Context, bad string) error { return b.job.SetDefault(ctx, port.Input, bad, 1) },
			"SetPorts": func(ctx context.Context, bad string) error {
				return b.job.SetPorts(ctx, []port.Spec{{Name: bad, Dir: port.Input}})
			},
			"Start": func(ctx context.Context, bad string) error {
				return start(ctx, job.Node{Type: "T", Ports: ports(in(bad))})
			},
			"Create": func(ctx context.Context, bad string) error {
				return create(ctx, job.New{Type: "T", Ports: []port.Spec{{Name: bad, Dir: port.Input}}})
			},
			"Connect": func(ctx context.Context, bad string) error {
				_, err := b.job.Connect(ctx, port.Output, "out", b.job.Ref(port.Input, bad))
				return err
			},
		},
		"channel": {
			"Publish": func(ctx context.Context, bad string) error { return b.client.Publish(ctx, "/"+bad, 1) },
			"Listen": func(ctx context.Context, bad string) error {
				return b.client.Listen(ctx, "/"+bad, func(json.RawMessage) {})
			},
			"SetPorts": func(ctx context.Context, bad string) error {
				return b.job.SetPorts(ctx, []port.Spec{{Name: "p", Dir: port.Input, Channels: []string{"/" + bad}}})
			},
		},
	} {
		for entry, try := range entries {
			for _, bad := range badNames {
				if names == "port" && bad == "a*" || names == "name" && entry == "Create" && bad == "" {
					continue
				}
				b.refuses(names+" of "+entry, bad, names, func(ctx context.Context) error { return try(ctx, bad) })
			}
		}
	}
	for _, bad := range badNames {
		b.refuses("Namespace", bad, "Namespace", func(context.Context) error { return redisstore.Config{Namespace: bad}.Validate() })
	}
}

// values tries bad values wherever there are values.
func (b *badInput) values() {
	b.Helper()
	for entry, try := range map[string]func(ctx context.Context, bad any) error{
		"Write":    func(ctx context.Context, bad any) error { return b.job.Write(ctx, "in", 1, bad) },
		"WriteOut": func(ctx context.Context, bad any) error { return b.job.WriteOut(ctx, "out", 1, bad) },
		"Publish":  func(ctx context.Context, bad any) error { return b.client.Publish(ctx, "/x", 1, bad) },
		"SetState": func(ctx context.Context, bad any) error {
			return b.job.SetState(ctx, map[string]any{"good": 1, "bad": bad})
		},
		"SetDefault": func(ctx context.Context, bad any) error { return b.job.SetDefault(ctx, port.Input, "in", bad) },
		"Create": func(ctx context.Context, bad any) error {
			_, err := b.client.Create(ctx, job.New{Type: "T", Args: map[string]any{"a": bad}})
			return err
		},
		"context": func(ctx context.Context, bad any) error {
			if text, ok := bad.(string); ok && len(text) > 1000 {
				bad = math.NaN() // a context may be large
			}
			return b.job.Write(job.WithContext(ctx, port.Context{"k": bad}), "in", 1)
		},
	} {
		for what, bad := range badValues {
			b.refuses(entry, what, "", func(ctx context.Context) error { return try(ctx, bad) })
		}
	}
}

// sizes are right at the limits and wrong one above.
func (b *badInput) sizes() {
	b.Helper()
	for what, try := range map[string]func(ctx context.Context) error{
		"a commit": func(ctx context.Context) error {
			var many []any
			for range 9 {
				many = append(many, strings.Repeat("x", 1<<20-10))
			}
			return b.job.Write(ctx, "in", many...)
		},
		"a label's value": func(ctx context.Context) error {
			_, err := b.client.Start(ctx, planner{job.Node{Type: "T"}}, job.Label("k", strings.Repeat("x", job.MaxLabelValue+1)))
			return err
		},
		"labels": func(ctx context.Context) error {
			labels := map[string]string{}
			for i := range job.MaxLabels + 1 {
				labels[fmt.Sprint("k", i)] = ""
			}
			_, err := b.client.Create(ctx, job.New{Type: "T", Labels: labels})
			return err
		},
		"a type": func(ctx context.Context) error {
			_, err := b.client.Start(ctx, planner{job.Node{Type: strings.Repeat("a", job.MaxName+1)}})
			return err
		},
	} {
		b.refuses("one too many: "+what, what, "", try)
	}
}

// What is odd but right comes back as it was, byte for byte, through messages, state,
// defaults and arguments; and what is at a limit is taken.
func TestOddInput(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	client := client.New(e.store)
	e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: "default"}}))
	for _, odd := range []string{
		"9007199254740993", "-9223372036854775809", "123456789012345678901234567890.123456789", "1e999", "-0", "0.1000", "1E+2",
		`{"a":1,"a":2}`, `{"":""}`, `"\u0000"`, `"\ud83d\ude00"`, `"😀"`, `"\u2028"`, `"<&>"`, "null", "[]", "{}", `""`, `"\u001f\u0001"`,
		strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999), `"` + strings.Repeat("x", job.MaxMessage-2) + `"`,
	} {
		raw := json.RawMessage(odd)
		h, err := client.Create(e.Context(), job.New{Type: "T", Args: json.RawMessage(`{"a":1}`), Ports: []port.Spec{{Name: "in", Dir: port.Input}}})
		e.Check(err)
		e.Check(h.Write(e.Context(), "in", raw))
		e.holds(h.ID(), port.Input, "in", odd)
		e.Check(h.SetDefault(e.Context(), port.Input, "in", raw))
		if p := e.port(h.ID(), port.Input, "in"); string(p.Default) != odd {
			e.Errorf("the default %.60s came back as %.60s", odd, p.Default)
		}
		if len(odd) < job.MaxMessage {
			e.Check(h.SetState(e.Context(), map[string]any{"k": raw}))
			state, err := h.State(e.Context())
			e.Check(err)
			if string(state["k"]) != odd {
				e.Errorf("the state %.60s came back as %.60s", odd, state["k"])
			}
		}
	}
	_, err := client.Start(e.Context(), planner{job.Node{Type: strings.Repeat("a", job.MaxName)}})
	e.Check(err)
}
