package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// TestRepeat: a job is created that repeats, shown, explained, and ended.
func TestRepeat(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	serving(t, url)
	weir(t, url, "create", "map", "--args", `{"expr":"it"}`, "--alias", "daily", "--repeat", "DAILY", "--zone", "Europe/Berlin", "--missed", "one")
	var v api.Job
	for deadline := time.Now().Add(20 * time.Second); v.Repeat == nil || v.Repeat.Count == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("it has not run: %+v", v.Repeat)
		}
		v = api.Job{}
		text := weir(t, url, "show", "daily", "-o", "json")
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if one, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err != nil || schemaOf(t)("job").Validate(one) != nil {
			t.Fatalf("%v: %v\n%s", err, schemaOf(t)("job").Validate(one), text)
		}
	}
	if v.Status != "scheduled" || v.Repeat.Schedule != "repeat:DAILY" || v.Repeat.Zone != "Europe/Berlin" || v.Repeat.Scheduled == nil || v.Repeat.Ended == nil {
		t.Errorf("%s, %+v", v.Status, v.Repeat)
	}
	if got := weir(t, url, "show", "daily"); !strings.Contains(got, "repeat:DAILY (when the last run finished, plus 1 day, on the clock in Europe/Berlin), completed once, last ") {
		t.Errorf("show says %s", got)
	}
	if got := weir(t, url, "why", "daily"); !strings.Contains(got, "repeats (repeat:DAILY): it completed") || !strings.Contains(got, "weir run daily") {
		t.Errorf("why says %s", got)
	}
	weir(t, url, "terminate", "daily")
	for args, want := range map[string]string{
		"--repeat=SOMETIMES":                 "repeat",
		"--zone=UTC":                         "--repeat",
		"--repeat=DAILY --missed=few":        "missed",
		"--repeat=DAILY --zone=Nowhere/City": "zone",
	} {
		var stderr bytes.Buffer
		words := append([]string{"--redis", url, "create", "map", "--args", `{"expr":"it"}`}, strings.Fields(args)...)
		if code := run(t.Context(), words, &stderr, &stderr); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr.String())
		}
	}
}
