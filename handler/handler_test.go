package handler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
)

func TestM09ExitClasses(t *testing.T) {
	t.Parallel()
	for status := -1; status < 700; status++ {
		want := handler.Code("")
		switch status / 100 {
		case 1:
			want = handler.Retry
		case 2:
			want = handler.OK
		case 4:
			want = handler.Failed
		case 5:
			want = handler.Error
		}
		if got := handler.CodeOf(status); got != want {
			t.Errorf("status %d has code %q, want %q", status, got, want)
		}
	}
	if !handler.OK.Done() || !handler.Failed.Done() || handler.Retry.Done() || handler.Error.Done() {
		t.Error("ok and failed are done, retry and error are not")
	}
	for exit, want := range map[int]int{0: 200, 75: 199, 1: 500, 137: 500, 3: 404} {
		if got := handler.StatusOfExit(exit, map[string]int{"3": 404}); got != want {
			t.Errorf("exit code %d is status %d, want %d", exit, got, want)
		}
	}
}

func TestM12Lines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]handler.Follow{
		"J: type2|hello": {Type: "type2", Payload: "hello"},
		"J: t|":          {Type: "t"},
	} {
		if got, ok := handler.ParseLine(line); !ok || got != want {
			t.Errorf("line %q: %+v, %v", line, got, ok)
		}
	}
	for line, want := range map[string]string{
		"J:x|y": "a blank is missing behind J:", "J: x": "it has no | behind the type", "J: |x": "type is empty", "J: two words|x": `type "two words": use letters`,
		" J: x|y": "", "j: x|y": "", "J: x|y": "", "hello": "",
	} {
		if got := (handler.Line{Text: line}).Wrong(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("of line %q is wrong: %q, want %q", line, got, want)
		}
	}
	if got := (handler.Line{Text: "J: x", Stderr: true}).Wrong(); got != "" {
		t.Errorf("on standard error is wrong: %q", got)
	}
	for _, line := range []string{"J:x|y", " J: x|y", "j: x|y", "J: x", "J: |x", "J: two words|x", "hello", ""} {
		if got, ok := handler.ParseLine(line); ok {
			t.Errorf("line %q asks for %+v", line, got)
		}
	}
}

func TestM16APayloadKeepsItsBars(t *testing.T) {
	t.Parallel()
	if f, ok := handler.ParseLine("J: type|a|b|c"); !ok || f.Payload != "a|b|c" {
		t.Errorf("payload %q, %v", f.Payload, ok)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("J: type|payload")
	f.Add("J: |")
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := handler.ParseLine(line)
		if ok && (line != "J: "+got.Type+"|"+got.Payload || job.CheckName("type", got.Type) != nil) {
			t.Errorf("line %q became %+v", line, got)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"lang":"node","body":"return 1","options":{"timeout":"3s","exits":{}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := handler.Parse(raw); err == nil && (d.Lang == "" || d.Body == "") {
			t.Errorf("%q became %+v", raw, d)
		} else if err != nil && !errors.Is(err, job.ErrValue) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// TestEIDIsKept, though it does nothing.
func TestEIDIsKept(t *testing.T) {
	t.Parallel()
	if d, err := handler.Parse([]byte(`{"lang":"sh","body":"x","eid":"node-18_x.1"}`)); err != nil || d.EID != "node-18_x.1" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestDefinitionsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                                           "lang is missing",
		`{"lang":"node"}`:                                              "body is missing",
		`{"body":"x"}`:                                                 "lang is missing",
		`{"lang":"nodee","body":"x"}`:                                  `did you mean "node"?`,
		`{"lang":"http","body":"x"}`:                                   "is not a URL",
		`{"lang":"sh","body":"x","eid":"a b"}`:                         `eid "a b": use up to 64`,
		`{"lang":"sh","boby":"x"}`:                                     `unknown key "boby": did you mean "body"?`,
		`{"lang":"sh","body":"x\u0000"}`:                               "a byte 0",
		`{"lang":"http","body":"http://x/","before":"x"}`:              "which a handler of lang http has not",
		`{"lang":"sh","body":"x","options":{"timeout":"30h"}}`:         "options.timeout 30h0m0s: use a time up to 24h0m0s",
		`{"lang":"sh","body":"x","options":{"timeout":"soon"}}`:        "is not a time",
		`{"lang":"sh","body":"x","options":{"batch":-1}}`:              "options.batch -1: use 1 to 1000",
		`{"lang":"sh","body":"x","options":{"secrets":["A B"]}}`:       "cannot be the name of a variable",
		`{"lang":"sh","body":"x","options":{"then":"no name"}}`:        "options.then",
		`{"lang":"sh","body":"x","options":{"exits":{"3":300}}}`:       "statuses 100-299 and 400-599",
		`{"lang":"sh","body":"x","options":{"exits":{"256":404}}}`:     "exit codes are 0 to 255",
		`{"lang":"node","body":"x","options":{"exits":{"3":404}}}`:     "node says its status itself",
		`{"lang":"sh","body":"x","options":{"env":{"A=":"b"}}}`:        "cannot be a variable",
		`{"lang":"sh","body":"x","options":{"memory":99999999999999}}`: "options.memory",
		`{"lang":"node","body":"x","options":{"memory":1000}}`:         "options.memory 1000: use at least 134217728",
	} {
		_, err := handler.Parse([]byte(text))
		if !errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A definition is taken as it was written, or as it is stored; no key is there twice.
func TestParse(t *testing.T) {
	t.Parallel()
	const code = `{"lang":"node","body":"return 1","prefix":"acme-"}`
	for text, want := range map[string]string{
		code: "",
		`{"type":"t","version":3,"at":"2026-03-12T07:00:00Z","definition":` + code + `}`: "",
		`{"type":"t","definition":{"lang":"nod","body":"x"}}`:                            `did you mean "node"?`,
		`{"type":"t","definition":{"lang":"node","boby":"x"}}`:                           `unknown key "boby": did you mean "body"?`,
		`{"type":"t","definition":{"lang":"node","lang":"node","body":"x"}}`:             `it has the key "lang" twice in one object, at byte 46`,
		`{"lang":"node","body":"x","options":{"batch":1,"batch":2}}`:                     `it has the key "batch" twice in one object, at byte 54`,
		`{"type":"t","lang":"node","body":"x"}`:                                          `unknown key "type"`,
	} {
		d, err := handler.ParseStored([]byte(text))
		switch {
		case want == "" && (err != nil || d.Body != "return 1"):
			t.Errorf("%s: %+v, %v", text, d, err)
		case want != "" && (!errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
