package redisstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// These tests go over the fields of store.Delta and job.Info, so that one which is added is told where it was forgotten.
// CONTRIBUTING.md has the recipe.

// plainText is in all texts that something makes; nothing is a number or a time with it.
const plainText = "plaintext"

// something puts a value other than zero into all of v.
func something(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(plainText)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3e6)
	case reflect.Uint8:
		v.SetUint('i')
	case reflect.Uint32:
		v.SetUint(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		something(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				something(t, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`"` + plainText + `"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		something(t, v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		something(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), value)
	default:
		t.Fatalf("something cannot make a %s: give it a case there", v.Type())
	}
}

// deltaWith returns a delta of which one field is set.
func deltaWith(t *testing.T, name string) store.Delta {
	t.Helper()
	d := store.Delta{Outcome: statemachine.Suspend}
	switch name {
	case "Outcome":
		d.Outcome = statemachine.Requeue
	case "Spawns":
		d.Spawns = []store.Spawn{{Base: 1, Alias: "a", Plan: &job.Plan{Nodes: []job.Node{{Name: "n", Type: "T", Args: json.RawMessage(`"` + plainText + `"`)}}}}}
	case "Launches":
		d.Launches = []*store.Launch{{ID: bareRoot, Plan: &job.Plan{Nodes: []job.Node{{Type: "T", Args: json.RawMessage(`"` + plainText + `"`)}}}}}
	case "Repeat": // of a run that completes for the last time
		d.Outcome, d.Repeat = statemachine.Complete, &job.Repeats{}
	default:
		something(t, reflect.ValueOf(&d).Elem().FieldByName(name))
	}
	if d.Job == "" {
		d.Job, d.Token = bareRoot, d.Token+"r1"
	}
	return d
}

// Each field of a delta is sent, and delta() in delta.lua reads as many arguments as are sent.
func TestDeltasAreSentWhole(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	b.scripts["read"] = "local whole = pcall(delta) return { whole and cursor or 0, #ARGV }"
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Delta]()) {
		d := deltaWith(t, f.Name)
		without := d
		reflect.ValueOf(&without).Elem().FieldByIndex(f.Index).SetZero()
		args := redisstore.DeltaArgs(&d)
		if slices.EqualFunc(args, redisstore.DeltaArgs(&without), func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("store.Delta.%s is not sent: append it in deltaArgs (redisstore/runs.go), and read it in delta() (scripts/delta.lua)", f.Name)
		}
		if got, want := b.run("read", args...), fmt.Sprintf("[%d %[1]d]", len(args)); got != want {
			t.Errorf("with store.Delta.%s set, delta() (scripts/delta.lua) has read [read sent] %s arguments, want %s: it has to read what deltaArgs "+
				"(redisstore/runs.go) appends, in that order", f.Name, got, want)
		}
	}
}

// Whatever a commit has is sent if it completes a record, or goes the general way.
func TestRecordsLoseNoField(t *testing.T) {
	t.Parallel()
	plain := store.Delta{Job: bareRoot, Token: "t", Outcome: statemachine.Complete}
	if redisstore.RecordArgs(plain) == nil {
		t.Fatal("a run that did nothing but complete does not complete a record")
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Delta]()) {
		with, from := plain, deltaWith(t, f.Name)
		reflect.ValueOf(&with).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(&from).Elem().FieldByIndex(f.Index))
		args := redisstore.RecordArgs(with)
		if args != nil && slices.EqualFunc(args, redisstore.RecordArgs(plain), func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) && f.Name != "Outcome" {
			t.Errorf("store.Delta.%s is lost when a run completes a record: refuse it in simple (redisstore/compact.go), or send it in completes (redisstore/record.go)", f.Name)
		}
	}
}

// upper is a codec that hides texts from whoever looks for plainText.
type upper struct{}

func (upper) Encode(_ job.Place, plain []byte) ([]byte, error) { return bytes.ToUpper(plain), nil }
func (upper) Decode(_ job.Place, raw []byte) ([]byte, error)   { return bytes.ToLower(raw), nil }

// sentInPlain are the fields of a delta whose texts no codec sees, and why.
var sentInPlain = map[string]string{
	"Job": "an ID", "Token": "a random text", "Next": "a random text", "Outcome": "an event", "Single": "a number",
	"Unset": "keys of the state", "Takes": "names of ports", "Closes": "names of ports", "Looked": "names of children", "Released": "names of children",
	"Speculation": "a token and the name of a port", "Needs": "a type and its versions",
	"Reason": "hidden with Failure or Needs, else it is the engine's own words",
}

// With a codec, whatever of a user's a commit has is encoded before it is sent.
func TestDeltasAreHidden(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Delta]()) {
		d := deltaWith(t, f.Name)
		for i := range d.Writes { // but where to
			d.Writes[i].Job, d.Writes[i].Port = bareRoot, "out"
		}
		for i := range d.Before {
			d.Before[i].Writes = nil
		}
		for i := range d.Defaults {
			d.Defaults[i].Job, d.Defaults[i].Port = bareRoot, "out"
		}
		for i := range d.SetPorts {
			d.SetPorts[i].Name, d.SetPorts[i].Channels = "out", nil
		}
		if d.Failure != nil {
			d.Failure.Port, d.Failure.Trace = "", ""
		}
		args, err := redisstore.HiddenArgs(d, upper{})
		if err != nil {
			t.Fatal(err)
		}
		shown := slices.ContainsFunc(args, func(a any) bool {
			raw, ok := a.([]byte)
			return ok && bytes.Contains(raw, []byte(plainText)) || strings.Contains(fmt.Sprint(a), plainText)
		})
		if shown && sentInPlain[f.Name] == "" {
			t.Errorf("store.Delta.%s is sent in plain though there is a codec: encode it in hideDelta (redisstore/codec.go), under a job.Kind, or say in "+
				"sentInPlain why not", f.Name)
		}
	}
}

// storedInPlain are the texts of job.Info that no codec sees.
var storedInPlain = []string{
	"ID", "Name", "Type", "Queue", "Status", "Parent", "By", "Last", "Token", "Policy", "Definition", "InstanceOf", "SequentialKey", "UniqueKey",
}

// Whatever of a user's a look at a job tells is decoded.
func TestInfoIsShown(t *testing.T) {
	t.Parallel()
	stored, err := redisstore.Hidden(plainText, upper{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[job.Info]()) {
		raw := f.Type == reflect.TypeFor[json.RawMessage]()
		if f.Type.Kind() != reflect.String && !raw || slices.Contains(storedInPlain, f.Name) {
			continue
		}
		var i job.Info
		v := reflect.ValueOf(&i).Elem().FieldByIndex(f.Index)
		if raw {
			v.SetBytes([]byte(stored))
		} else {
			v.SetString(stored)
		}
		i = redisstore.Shown(i, upper{})
		if got := fmt.Sprintf("%s", v); got != plainText {
			t.Errorf("job.Info.%s is %q for those who look: decode it in showInfo (redisstore/codec.go), or name it in storedInPlain", f.Name, got)
		}
	}
}

// fromElsewhere are the fields of job.Info that no field of the job's hash has.
var fromElsewhere = []string{"Next", "Lease", "Woke", "Expires", "Unread"}

// Each field of a job in Redis is described, and what it says is read.
func TestFieldsOfJobs(t *testing.T) {
	t.Parallel()
	fields := map[string]string{}
	for field := range describedFields(t) {
		fields[field] = "1"
	}
	for field, value := range map[string]string{
		"status": string(statemachine.Failed), "parent": bareRoot, "type": "T@2", "written": "1,1", "messages": "T in in\tint", "deaths": "1:1", "lapses": "1:1",
		"options": "1 1 1 1", "progress": "1 2 words", "repeat": `{"schedule":"@daily"}`, "repeated": "1 1 1 1 1 1 1", "retain": "release", "labels": `{"a":"b"}`, "unique": "1 u",
		"trace": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01", "round": "100000000000", "due": "1", "i.in": "0",
	} {
		if fields[field] = value; field != "i.in" && !describedFields(t)[field] {
			t.Errorf("docs/redis.md does not describe the field %s of a job", field)
		}
	}
	info, err := redisstore.InfoOf(bareRoot, fields)
	if err != nil {
		t.Fatal(err)
	}
	fields["retain"] = "1000"
	kept, err := redisstore.InfoOf(bareRoot, fields)
	if err != nil {
		t.Fatal(err)
	}
	info.Retain = kept.Retain
	for _, f := range reflect.VisibleFields(reflect.TypeFor[job.Info]()) {
		if reflect.ValueOf(info).Elem().FieldByIndex(f.Index).IsZero() && !slices.Contains(fromElsewhere, f.Name) {
			t.Errorf("job.Info.%s is not read from Redis: describe its field in docs/redis.md, and read it in info() (redisstore/reply.go); or name it in "+
				"fromElsewhere", f.Name)
		}
	}
}

// describedFields are those that the last table of docs/redis.md has, without those of ports.
func describedFields(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Fields of a job")
	all := map[string]bool{}
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(cell, -1) {
			all[m[1]] = true
		}
	}
	if len(all) < 40 {
		t.Fatalf("docs/redis.md describes %d fields", len(all))
	}
	return all
}
