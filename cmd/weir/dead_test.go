package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// moaning starts a job under the alias moaner that has dead letters of these messages, and returns their IDs.
func moaning(t *testing.T, url string, messages ...string) (ids []string) {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	side := func(dir port.Dir, name string) job.Port { return job.Port{Spec: port.Spec{Dir: dir, Name: name}} }
	c := client.New(store)
	h, err := c.Start(t.Context(), &planned{Nodes: []job.Node{{
		Type: "Moaner", OnFailure: job.DeadLetter, Ports: []job.Port{side(port.Input, "in"), side(port.Output, job.ErrorsPort)},
	}}}, job.Alias("moaner"))
	enginetest.Check(t, err)
	for i, m := range messages {
		l := job.Letter{Job: h.ID(), Error: "cannot do it", At: time.Unix(int64(i), 0).UTC(), Messages: map[string]json.RawMessage{"in": json.RawMessage(m)}}
		enginetest.Check(t, h.WriteOut(t.Context(), job.ErrorsPort, l))
	}
	for l, err := range c.DeadLetters(t.Context(), client.LetterFilter{Job: h.ID()}) {
		enginetest.Check(t, err)
		ids = append(ids, l.ID)
	}
	return ids
}

func TestPoint6Dead(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	command := func(line string) (code int, said string) {
		var out bytes.Buffer
		code = run(t.Context(), append([]string{"--redis", url}, strings.Fields(line)...), &out, &out)
		return code, out.String()
	}
	if _, said := command("dead list"); said != "no dead letters\n" {
		t.Errorf("without any: %s", said)
	}
	ids := moaning(t, url, `"bad"`, `2`, `3`, `4`)
	_, listed := command("dead list")
	if _, said := command("dead"); said != listed || !strings.Contains(said, "  moaner  ") {
		t.Errorf("dead: %s\ndead list: %s", said, listed)
	}
	schema := schemaOf(t)
	for line, name := range map[string]string{"dead list": "dead_list", "dead list moaner --error cannot": "dead_list", "dead show moaner " + ids[1]: "dead_show"} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(weir(t, url, append(strings.Fields(line), "-o", "json")...)))
		if err != nil || schema(name).Validate(v) != nil {
			t.Errorf("%s: %v, %v", line, err, schema(name).Validate(v))
		}
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"dead requeue --yes", exitUsage, "give a JOB, or say which dead letters are meant with --type, "},
		{"dead requeue moaner", exitUsage, "add --yes, or --dry-run to see which dead letters are meant"},
		{"dead requeue moaner " + ids[0] + " --error x", exitUsage, "--error says which of many dead letters are meant: leave it out, or " + ids[0]},
		{"dead requeue --error= --yes", exitUsage, "--error is empty"},
		{"dead list --port out", exitUsage, "of which job?"},
		{"dead list nobody", exitNotFound, `"nobody"`},
		{"dead list", 0, "ID          JOB"},
		{"dead list --type Other", 0, "no dead letters"},
		{"dead list --newer 1h", 0, "no dead letters"},
		{"dead list -n 1", 0, "there are more"},
		{"dead show moaner ffffffffff", exitNotFound, `no dead letter "ffffffffff": weir dead list moaner lists them`},
		{"dead show moaner " + ids[0], 0, "error     cannot do it\nport in   \"bad\"\n"},
		{"dead edit moaner " + ids[0] + " inn=3", exitUsage, `no message of port "inn": did you mean "in"?`},
		{"dead edit moaner " + ids[0] + " in={", exitUsage, "not valid JSON"},
		{"dead edit moaner " + ids[0] + " in", exitUsage, "write it as PORT=MESSAGE"},
		{"dead edit moaner " + ids[0] + " in=41", 0, "dead letter " + ids[0] + " is changed\n"},
		{"dead requeue moaner --dry-run -o json", 0, `"in": 41`},
		{"dead requeue moaner " + ids[0] + " -o jsonl", 0, `{"id":"` + ids[0] + `",`},
		{"peek moaner in", 0, "41\n"},
		{"dead requeue moaner " + ids[0], exitNotFound, "no dead letter"},
		{"dead requeue moaner " + ids[1] + " --to nobody", exitNotFound, `"nobody"`},
		{"dead discard moaner " + ids[1], 0, "1 dead letter discarded\n"},
		{"dead requeue --error else --yes -o json", 0, "[]\n"},
		{"dead requeue --older 1h --yes -o json", 0, `"in": 3`},
		{"peek moaner in", 0, "41\n3\n4\n"},
		{"dead requeue moaner --yes", 0, "0 dead letters requeued\n"},
		{"dead discard moaner --yes", 0, "0 dead letters discarded\n"},
		{"log moaner", 0, "by weir"},
		{"dead", 0, "no dead letters"},
		{"dead --help", 0, "Alone it is weir dead list."},
	} {
		if code, said := command(c.line); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("weir %s: exit code %d, %s", c.line, code, said)
		}
	}
}

// Equal reasons of many dead letters are said once, and the job is called what commands call it.
func TestRequeueFoldsReasons(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	messages := make([]string, 140) // more than are read at a time
	for i := range messages {
		messages[i] = strconv.Itoa(i)
	}
	moaning(t, url, messages...)
	var out bytes.Buffer
	code := run(t.Context(), []string{"--redis", url, "wait", "moaner", "--timeout", "300ms"}, &out, &out)
	if !strings.HasPrefix(out.String(), "weir: not completed after 300ms: waiting for job moaner (Moaner), which is ") || code != exitTimeout {
		t.Errorf("weir wait: exit code %d, %s", code, &out)
	}
	out.Reset()
	weir(t, url, "send", "moaner", "in", "--close")
	code = run(t.Context(), []string{"--redis", url, "dead", "requeue", "moaner", "--yes"}, &out, &out)
	want := "weir: 140 of 140 dead letters were not requeued: port \"in\" of job moaner is closed"
	if code != exitRefused || !strings.HasPrefix(out.String(), want) || out.Len() > 300 {
		t.Errorf("exit code %d, %s\nwant: %s", code, &out, want)
	}
	out.Reset()
	want = "weir: port \"in\" of job moaner is closed and gets no more messages: start the job or graph anew, and send them there\n"
	if code = run(t.Context(), []string{"--redis", url, "send", "moaner", "in", "1"}, &out, &out); code != exitRefused || out.String() != want {
		t.Errorf("exit code %d, %s\nwant: %s", code, &out, want)
	}
}

// A job whose input has ended gets no more messages: that is said with the way out.
func TestRequeueAfterTheEnd(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	moaning(t, url, `1`)
	if said := weir(t, url, "why", "moaner"); !strings.Contains(said, "1 dead letter lies in its port errors") || !strings.Contains(said, "$ weir dead list moaner\n") {
		t.Error(said)
	}
	weir(t, url, "send", "moaner", "in", "--close")
	if said := weir(t, url, "why", "moaner"); !strings.Contains(said, "job moaner could not handle") || !strings.Contains(said, "$ weir dead requeue moaner --to JOB\n") || strings.Contains(said, "before its inputs end") {
		t.Error(said)
	}
	var out bytes.Buffer
	code := run(t.Context(), []string{"--redis", url, "dead", "requeue", "moaner", "--yes"}, &out, &out)
	if want := "To have these handled anyway, start the job or graph anew, and requeue them there: --to JOB"; code != exitRefused || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d, %s", code, &out)
	}
	if got := weir(t, url, "dead", "list", "-o", "jsonl"); strings.Count(got, "\n") != 1 {
		t.Errorf("dead letters are now: %s", got)
	}
}

// A message that weir send would refuse does not get into a dead letter, either.
func TestEditRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	ids := moaning(t, url, `"bad"`)
	enginetest.Check(t, enginetest.Open(t, redisstore.Config{URL: url}).Register(t.Context(), []job.TypeInfo{{
		Type: "Moaner", Queue: job.DefaultQueue, Ports: []port.Spec{{Dir: port.Input, Name: "in", Type: "int"}}, Kinds: map[string]string{port.TypeKey(port.Input, "in"): port.KindInteger},
	}}))
	var sent, edited bytes.Buffer
	code := run(t.Context(), []string{"--redis", url, "send", "moaner", "in", `"worse"`}, &sent, &sent)
	_, want, _ := strings.Cut(sent.String(), "message 1: ")
	again := run(t.Context(), []string{"--redis", url, "dead", "edit", "moaner", ids[0], `in="worse"`}, &edited, &edited)
	if code == 0 || again != code || want == "" || !strings.HasSuffix(edited.String(), want) {
		t.Errorf("send: exit code %d, %s\ndead edit: %d, %s", code, &sent, again, &edited)
	}
	if got := weir(t, url, "dead", "edit", "moaner", ids[0], "in=41"); !strings.HasSuffix(got, "is changed\n") {
		t.Error(got)
	}
}

// What one job could not do another one gets, of another tree.
func TestPoint6RequeueToAnotherTree(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	moaning(t, url, `1`, `2`)
	shop(t, url)
	if got := weir(t, url, "dead", "requeue", "moaner", "--to", "one", "--yes"); got != "2 dead letters requeued\n" {
		t.Error(got)
	}
	if got := weir(t, url, "peek", "one", "in") + weir(t, url, "peek", "moaner", "errors"); got != "1\n2\n" {
		t.Errorf("the messages are %s", got)
	}
}
