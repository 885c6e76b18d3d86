package statemachine_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	sm "github.com/weirworks/weir/statemachine"
)

// grid is what each status becomes on each event, written by hand and not
// derived from the package's table. The first line names the columns.
const grid = `
event          new         queued      scheduled   waiting     running     suspended   completed   failed      terminating terminated
create         queued      .           .           .           .           .           .           .           .           .
create_later   scheduled   .           .           .           .           .           .           .           .           .
create_waiting waiting     .           .           .           .           .           .           .           .           .
create_idle    suspended   .           .           .           .           .           .           .           .           .
due            .           .           queued      .           .           .           .           .           .           .
key_free       .           .           .           queued      .           .           .           .           .           .
key_held       .           waiting     .           .           .           .           .           .           .           .
begin          .           running     .           .           .           .           .           .           .           .
requeue        .           .           .           .           queued      .           .           .           .           .
suspend        .           .           .           .           suspended   .           .           .           .           .
complete       .           .           .           .           completed   .           .           .           .           .
fail           .           .           .           .           failed      .           .           .           .           .
backoff        .           .           .           .           scheduled   .           .           .           .           .
reschedule     .           .           .           .           scheduled   .           .           .           .           .
recover        .           .           .           .           queued      .           .           .           .           .
wake           .           .           .           .           .           queued      queued      .           .           .
run            .           .           queued      .           .           queued      queued      .           .           .
retry          .           .           queued      .           .           .           .           queued      .           .
retry_later    .           .           scheduled   .           scheduled   .           .           scheduled   .           .
give_up        .           failed      failed      failed      failed      failed      .           .           .           .
force          .           .           queued      .           .           queued      queued      queued      .           queued
terminate      .           terminating terminating terminating terminating terminating terminating terminating .           .
shutdown       .           .           .           .           .           .           .           .           terminated  .
`

// law is the coarse view of the same machine: which status may follow which.
const law = `
new         -> queued scheduled waiting suspended
queued      -> running waiting failed terminating
scheduled   -> queued scheduled failed terminating
waiting     -> queued failed terminating
running     -> queued scheduled suspended completed failed terminating
suspended   -> queued failed terminating
completed   -> queued terminating
failed      -> queued scheduled terminating
terminating -> terminated
terminated  -> queued
`

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func status(name string) sm.Status {
	if name == "new" {
		return sm.New
	}
	return sm.Status(name)
}

// everyStatus is New and the stored statuses.
func everyStatus() []sm.Status { return append([]sm.Status{sm.New}, sm.Statuses()...) }

func TestEveryStatusOnEveryEvent(t *testing.T) {
	t.Parallel()
	rows := lines(grid)
	columns := strings.Fields(rows[0])[1:]
	if got, want := len(columns), len(sm.Statuses())+1; got != want {
		t.Fatalf("the grid has %d statuses, the package %d", got, want)
	}
	var events []sm.Event
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		event := sm.Event(cells[0])
		events = append(events, event)
		for i, cell := range cells[1:] {
			checkNext(t, status(columns[i]), event, cell)
		}
	}
	if got := sm.Events(); !slices.Equal(got, events) {
		t.Errorf("Events() = %v, want those of the grid: %v", got, events)
	}
}

func checkNext(t *testing.T, from sm.Status, event sm.Event, cell string) {
	t.Helper()
	got, err := sm.Next(from, event)
	accepted := slices.Contains(sm.Accepts(from), event)
	if accepted != (cell != ".") {
		t.Errorf("Accepts(%q) has %s: %t, want %t", from, event, accepted, cell != ".")
	}
	if cell != "." {
		if err != nil || got != status(cell) {
			t.Errorf("Next(%q, %s) = %q, %v; want %s", from, event, got, err, cell)
		}
		return
	}
	var refused *sm.TransitionError
	if !errors.As(err, &refused) || refused.Status != from || refused.Event != event {
		t.Errorf("Next(%q, %s) error = %v; want a TransitionError that says so", from, event, err)
	}
	if got != from {
		t.Errorf("Next(%q, %s) = %q; want the status unchanged", from, event, got)
	}
}

func TestLaw(t *testing.T) {
	t.Parallel()
	type pair struct{ from, to sm.Status }
	want := map[pair]bool{}
	for _, line := range lines(law) {
		from, to, _ := strings.Cut(line, "->")
		for _, name := range strings.Fields(to) {
			want[pair{status(strings.TrimSpace(from)), status(name)}] = true
		}
	}
	got := map[pair]bool{}
	for _, move := range sm.Transitions() {
		p := pair{move.From, move.To}
		got[p] = true
		if !want[p] {
			t.Errorf("%s leads from %q to %q, against the law", move.Event, move.From, move.To)
		}
	}
	for p := range want {
		if !got[p] {
			t.Errorf("nothing leads from %q to %q", p.from, p.to)
		}
	}
}

func TestTransitionsAgreeWithNext(t *testing.T) {
	t.Parallel()
	var want []sm.Transition
	for _, from := range everyStatus() {
		for _, event := range sm.Events() {
			if to, err := sm.Next(from, event); err == nil {
				want = append(want, sm.Transition{From: from, Event: event, To: to})
			}
		}
	}
	if got := sm.Transitions(); !slices.Equal(got, want) {
		t.Errorf("Transitions() = %v\nwant %v", got, want)
	}
}

// reachable returns the statuses that some events lead to from one status,
// which is among them.
func reachable(from sm.Status) map[sm.Status]bool {
	seen := map[sm.Status]bool{from: true}
	for grown := true; grown; {
		grown = false
		for _, move := range sm.Transitions() {
			if seen[move.From] && !seen[move.To] {
				seen[move.To], grown = true, true
			}
		}
	}
	return seen
}

func TestNoDeadEnds(t *testing.T) {
	t.Parallel()
	fromNew := reachable(sm.New)
	for _, s := range sm.Statuses() {
		if !fromNew[s] {
			t.Errorf("no job can become %s", s)
		}
		if !reachable(s)[sm.Terminated] {
			t.Errorf("a %s job cannot be terminated", s)
		}
		if len(sm.Accepts(s)) == 0 {
			t.Errorf("a %s job is stuck", s)
		}
		if reachable(s)[sm.New] {
			t.Errorf("a %s job can become new", s)
		}
	}
}

func TestRandomLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := sm.New
		anything := rapid.Map(rapid.String(), func(s string) sm.Event { return sm.Event(s) })
		event := rapid.OneOf(rapid.SampledFrom(sm.Events()), anything)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			e := event.Draw(t, "event")
			next, err := sm.Next(at, e)
			switch {
			case err != nil && next != at:
				t.Fatalf("%s refused by %q moved it to %q", e, at, next)
			case err != nil && slices.Contains(sm.Accepts(at), e):
				t.Fatalf("%q accepts %s and refused it: %v", at, e, err)
			case err == nil && !slices.Contains(sm.Statuses(), next):
				t.Fatalf("%s led from %q to %q, which is no stored status", e, at, next)
			}
			at = next
		}
	})
}

func TestKindsOfStatus(t *testing.T) {
	t.Parallel()
	tests := map[sm.Status]struct{ settled, final, active bool }{
		sm.New:         {},
		sm.Queued:      {active: true},
		sm.Scheduled:   {active: true},
		sm.Waiting:     {active: true},
		sm.Running:     {active: true},
		sm.Suspended:   {},
		sm.Completed:   {settled: true},
		sm.Failed:      {},
		sm.Terminating: {active: true},
		sm.Terminated:  {settled: true, final: true},
		"lost":         {},
	}
	for _, s := range append(everyStatus(), "lost") {
		want, ok := tests[s]
		if !ok {
			t.Errorf("no expectation for %q", s)
		}
		if s.Settled() != want.settled || s.Final() != want.final || s.Active() != want.active {
			t.Errorf("%q: settled %t, final %t, active %t; want %+v", s, s.Settled(), s.Final(), s.Active(), want)
		}
	}
}

func TestTransitionErrorMessage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status sm.Status
		event  sm.Event
		want   string
	}{
		{sm.New, sm.Begin, "a new job does not accept the event begin; it accepts create, create_later, create_waiting, create_idle"},
		{sm.Terminated, sm.Retry, "a terminated job does not accept the event retry; it accepts force"},
		{"lost", sm.Begin, `unknown status "lost"`},
		{sm.Queued, "explode", `unknown event "explode"`},
	}
	for _, tt := range tests {
		_, err := sm.Next(tt.status, tt.event)
		if err == nil || err.Error() != tt.want {
			t.Errorf("Next(%q, %s) error = %v\nwant %s", tt.status, tt.event, err, tt.want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for _, s := range sm.Statuses() {
		if got, err := sm.ParseStatus(s.String()); err != nil || got != s {
			t.Errorf("ParseStatus(%q) = %q, %v", s, got, err)
		}
	}
	for _, name := range []string{"", "new", "Queued", " queued", "create"} {
		_, err := sm.ParseStatus(name)
		if err == nil {
			t.Errorf("ParseStatus(%q) succeeded", name)
			continue
		}
		for _, s := range sm.Statuses() {
			if !strings.Contains(err.Error(), s.String()) {
				t.Errorf("ParseStatus(%q) error %q does not list %s", name, err, s)
			}
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add("")
	f.Add("queued")
	f.Add("queued\x00")
	f.Fuzz(func(t *testing.T, name string) {
		s, err := sm.ParseStatus(name)
		if known := slices.Contains(sm.Statuses(), sm.Status(name)); known != (err == nil) {
			t.Fatalf("ParseStatus(%q) error = %v, known: %t", name, err, known)
		}
		if err == nil && s.String() != name {
			t.Fatalf("ParseStatus(%q) = %q", name, s)
		}
	})
}

func TestEverythingIsDocumentedOnOneLine(t *testing.T) {
	t.Parallel()
	docs := map[string]string{}
	for _, s := range everyStatus() {
		docs["status "+s.String()] = s.Doc()
	}
	for _, e := range sm.Events() {
		docs["event "+e.String()] = e.Doc()
	}
	for name, doc := range docs {
		if !strings.HasSuffix(doc, ".") || strings.ContainsAny(doc, "\n|") {
			t.Errorf("%s: %q is no sentence fit for a table", name, doc)
		}
	}
	if doc := sm.Status("lost").Doc() + sm.Event("explode").Doc(); doc != "" {
		t.Errorf("what does not exist is documented: %q", doc)
	}
}

func TestReturnedSlicesBelongToTheCaller(t *testing.T) {
	t.Parallel()
	clear(sm.Statuses())
	clear(sm.Events())
	clear(sm.Accepts(sm.Running))
	clear(sm.Transitions())
	if got, err := sm.Next(sm.Running, sm.Suspend); err != nil || got != sm.Suspended {
		t.Errorf("after clearing the slices, Next = %q, %v", got, err)
	}
	if slices.Contains(sm.Statuses(), sm.New) || slices.Contains(sm.Events(), "") {
		t.Error("clearing a returned slice changed the table")
	}
}

func TestMermaidHasEveryArrowOnce(t *testing.T) {
	t.Parallel()
	arrows := map[string]bool{}
	for _, move := range sm.Transitions() {
		from := move.From.String()
		if move.From == sm.New {
			from = "[*]"
		}
		arrows["    "+from+" --> "+move.To.String()+" : "] = true
	}
	diagram := sm.Mermaid()
	if !strings.HasPrefix(diagram, "stateDiagram-v2\n") {
		t.Errorf("not a state diagram:\n%s", diagram)
	}
	for arrow := range arrows {
		if n := strings.Count(diagram, arrow); n != 1 {
			t.Errorf("%q occurs %d times in\n%s", arrow, n, diagram)
		}
	}
	if got, want := strings.Count(diagram, "-->"), len(arrows); got != want {
		t.Errorf("%d arrows, want %d", got, want)
	}
	if want := "    completed --> queued : wake, run, force\n"; !strings.Contains(diagram, want) {
		t.Errorf("no %q in\n%s", want, diagram)
	}
}

func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/state_machine.md")
	if err != nil {
		t.Fatalf("%v; run: go generate ./statemachine", err)
	}
	// A checkout may have changed the line ends.
	if strings.ReplaceAll(string(page), "\r\n", "\n") != sm.Markdown() {
		t.Error("docs/state_machine.md is out of date; run: go generate ./statemachine")
	}
}
