package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// Triggers are made, shown, fired, changed and deleted over HTTP; C24: a message for one that is no webhook is refused.
func TestTriggersOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	var one api.Trigger
	s.ask("POST", "/v1/triggers", `{"definition":{"schedule":"every:24h","launch":{"type":"map","args":{"expr":"it"}}},"alias":"daily","labels":{"a":"b"}}`).is(http.StatusCreated, &one)
	if one.Kind != "schedule" || len(one.Next) != 5 || one.Aliases[0] != "daily" || one.Understood == "" {
		t.Errorf("made %+v", one)
	}
	s.ask("POST", "/v1/triggers", `{"definition":{"limits":{"debounce":"10ms","payload":"append"}},"graph":{"graph":{"weir":1,"name":"sums","nodes":{"m":{"type":"map","args":{"expr":"it"}}},"inputs":{"n":"m.in"}}},"alias":"hook"}`).is(http.StatusCreated, &one)
	if one.Kind != "webhook" {
		t.Errorf("made %+v", one)
	}
	for body, want := range map[string]string{
		`{"definition":{"schedule":"61 * * * *","launch":{"type":"map"}}}`: "schedule",
		`{"definition":{"sched":"61 * * * *"}}`:                            "sched",
		`{}`:                                                               "what is it to launch",
		`{"definition":{"launch":{"type":"map","args":{"expression":"it"}}}}`:                                                "expression",
		`{"definition":{"launch":{"type":"map"},"limits":{"throttle":"10e"}}}`:                                               "1.5s",
		`{"definition":{"launch":{"type":"map","args":{"expr":"it+"}}}}`:                                                     "expr",
		`{"graph":{"graph":{"weir":1,"name":"g","nodes":{"m":{"type":"map","args":{"expr":"it+"}}},"inputs":{"n":"m.in"}}}}`: "expr",
	} {
		s.ask("POST", "/v1/triggers", body).refuses(http.StatusUnprocessableEntity, "usage", want)
	}
	s.ask("POST", "/v1/triggers/hook/send", `7`).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/triggers/daily/send", `7`).refuses(http.StatusUnprocessableEntity, "usage", "use fire")
	s.ask("POST", "/v1/triggers/daily/pause", nil).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/triggers/daily/fire", `{"by":"hand"}`).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/triggers/daily/fire", nil).is(http.StatusNoContent, nil)
	s.ask("PATCH", "/v1/triggers/daily", `{"missed":"all","schedule":"every:12h"}`).is(http.StatusNoContent, nil)
	for _, body := range []string{`5`, `"x"`, `[1]`, `true`} {
		s.ask("PATCH", "/v1/triggers/daily", body).refuses(http.StatusUnprocessableEntity, "usage", "is not a JSON object")
	}
	s.ask("PATCH", "/v1/triggers/daily", `{"missed":"never"}`).refuses(http.StatusUnprocessableEntity, "usage", "missed")
	for name, launches := range map[string]int64{"daily": 2, "hook": 1} {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			s.ask("GET", "/v1/triggers/"+name+"?next=2", nil).is(http.StatusOK, &one)
			if one.Launches == launches && one.Pending == 0 && one.Waiting == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("trigger %+v", one)
			}
		}
		if name == "daily" && (!one.Paused || one.Last == nil) {
			t.Errorf("trigger %+v", one)
		}
	}
	s.ask("POST", "/v1/triggers/daily/resume", nil).is(http.StatusNoContent, nil)
	var all []api.Trigger
	s.ask("GET", "/v1/triggers", nil).is(http.StatusOK, &all)
	if len(all) != 2 {
		t.Errorf("listed %+v", all)
	}
	s.ask("DELETE", "/v1/triggers/daily", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/triggers/daily", nil).refuses(http.StatusNotFound, "not_found", "daily")
	s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "alias": "no"}).is(http.StatusCreated, nil)
	s.ask("GET", "/v1/triggers/no", nil).refuses(http.StatusUnprocessableEntity, "usage", "not a trigger")
}

// Making a trigger, sending to it and firing it happen once for a key; what is too large to launch is refused at the door.
func TestTriggersOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	var one, again api.Trigger
	hook := `{"definition":{"launch":{"type":"map","args":{"expr":"it"}}}}`
	s.ask("POST", "/v1/triggers", hook, "Idempotency-Key", "k").is(http.StatusCreated, &one)
	s.ask("POST", "/v1/triggers", hook, "Idempotency-Key", "k").is(http.StatusCreated, &again)
	if one.ID != again.ID {
		t.Errorf("made %s and %s", one.ID, again.ID)
	}
	path := "/v1/triggers/" + string(one.ID)
	for range 3 {
		s.ask("POST", path+"/send", `7`, "Idempotency-Key", "k").is(http.StatusNoContent, nil)
		s.ask("POST", path+"/fire", `8`, "Idempotency-Key", "k").is(http.StatusNoContent, nil)
	}
	s.ask("POST", path+"/send", `9`, "Idempotency-Key", "k").refuses(http.StatusUnprocessableEntity, "key_reused", "another request")
	s.ask("POST", path+"/send", `10`).is(http.StatusNoContent, nil)
	large := `"` + strings.Repeat("x", 300<<10) + `"`
	for _, verb := range []string{"/send", "/fire"} {
		s.ask("POST", path+verb, large).refuses(http.StatusRequestEntityTooLarge, "too_large", "261120")
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.ask("GET", path, nil).is(http.StatusOK, &one)
		if one.Launches == 3 && one.Pending == 0 && one.Waiting == 0 {
			break
		}
		if one.Launches > 3 || time.Now().After(deadline) {
			t.Fatalf("trigger %+v", one)
		}
	}
	if len(one.Dropped) > 0 {
		t.Errorf("dropped %v", one.Dropped)
	}
}

// A trigger that is there under the alias becomes the one that is sent, if that is asked for.
func TestTriggerPatchedOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	body := func(every, more string) string {
		return `{"definition":{"schedule":"every:` + every + `","launch":{"type":"map","args":{"expr":"it"}}}` + more + `}`
	}
	patch := `,"alias":"daily","existing":"patch"`
	var one, again api.Trigger
	s.ask("POST", "/v1/triggers", body("24h", patch)).is(http.StatusCreated, &one)
	s.ask("POST", "/v1/triggers", body("12h", `,"alias":"daily"`)).refuses(http.StatusConflict, "exists", "alias")
	for _, every := range []string{"24h", "12h", "12h"} {
		s.ask("POST", "/v1/triggers", body(every, patch)).is(http.StatusCreated, &again)
		for deadline := time.Now().Add(20 * time.Second); again.Pending > 0 || !strings.Contains(string(again.Definition), every); time.Sleep(10 * time.Millisecond) {
			s.ask("GET", "/v1/triggers/daily", nil).is(http.StatusOK, &again)
			if time.Now().After(deadline) {
				t.Fatalf("trigger %+v", again)
			}
		}
		if again.ID != one.ID {
			t.Errorf("trigger %s in place of %s", again.ID, one.ID)
		}
	}
	s.ask("POST", "/v1/triggers", body("1h", `,"existing":"patch"`)).refuses(http.StatusUnprocessableEntity, "usage", "alias")
	s.ask("POST", "/v1/triggers", body("1h", `,"alias":"daily","existing":"take"`)).refuses(http.StatusUnprocessableEntity, "usage", "patch")
}
