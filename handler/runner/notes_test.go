package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirworks/weir/handler"
)

// TestLinesThatStartNothingAreToldOf, and those that start jobs which wait, once for each type; of many some are told of.
func TestLinesThatStartNothingAreToldOf(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{
		"wrong": js("console.log('J: nosuch|x'); console.log('J: nosuch|y'); console.log('J: other'); console.log('J: other|z'); console.log('J: no such|x')"),
		"many":  js("for (let n = 0; n < 13; n++) console.log('J: other' + n)"),
		"other": js("return 1"),
	})
	wrong := h.add("wrong", "x")
	h.ended(wrong)
	want := "J: other\nJ: no such|x\n" +
		"nothing runs jobs of type nosuch now: what its lines have started waits until weir handler set gives the type code\n" +
		"the line \"J: other\" starts no job: it has no | behind the type; write it as J: TYPE|PAYLOAD\n" +
		"the line \"J: no such|x\" starts no job: invalid name: type \"no such\": use letters, digits and _ - . : /, beginning with a letter or digit; write it as J: TYPE|PAYLOAD\n"
	if got := h.log(wrong); got != want {
		t.Errorf("log:\n%s\nwant:\n%s", got, want)
	}
	many := h.add("many", "x")
	h.ended(many)
	if got := h.log(many); strings.Count(got, "starts no job") != 10 || !strings.HasSuffix(got, "\n… and 3 more lines that start no job, or one that waits\n") {
		t.Errorf("log:\n%s", got)
	}
}

// TestThenWithoutAResultIsToldOf: no job follows, and the log says why.
func TestThenWithoutAResultIsToldOf(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{"t": js("if (payload == 'fail') job.fail('no')", handler.Options{Then: "next"}), "next": js("return 1")})
	for payload, want := range map[string]string{"x": "no job of type next is started (options.then): the payload has no result\n", "fail": ""} {
		handle := h.add("t", payload)
		h.ended(handle)
		if got := h.log(handle); got != want {
			t.Errorf("%s: log %q, want %q", payload, got, want)
		}
	}
	if n := len(h.of("next")); n > 0 {
		t.Errorf("%d jobs follow", n)
	}
}

// TestResultsAreText: bytes that are not UTF-8, and half characters, are no result; the payload fails, unless it has another status than ok.
func TestResultsAreText(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = fmt.Fprint(w, "a\xffb")
	}))
	defer server.Close()
	const why = "the result is not valid UTF-8: encode what is binary, as base64 for instance"
	p := newPool(t, nil)
	for n, c := range []struct {
		lang, body string
		status     int
		want       string
	}{
		{handler.Shell, `printf 'a\377b' >&3`, 422, why},
		{handler.Shell, `printf '{"status":200,"result":"a\377b"}' >&3`, 422, why},
		{handler.Shell, `printf 'a\377b' >&3; exit 3`, 500, "its process ended with exit code 3; " + why},
		{handler.Shell, `printf 'a\357\277\275b' >&3`, 200, ""}, // the replacement character itself
		{handler.Python, `return "a\udcffb"`, 422, why},
		{handler.Node, `return "a\udcffb"`, 422, why},
		{handler.HTTP, server.URL, 422, why},
		{handler.HTTP, server.URL + "/gone", 410, "the answer has status 410: a\uFFFDb; " + why},
	} {
		r := do(t, p, stored(fmt.Sprint("t", n), handler.Definition{Lang: c.lang, Body: c.body}), "x")[0]
		if r.Status != c.status || !strings.HasPrefix(r.Error, c.want) || c.want == "" && string(r.Value) != "\"a\uFFFDb\"" || c.want != "" && r.Value != nil {
			t.Errorf("%s %s: %+v, want %d, %q", c.lang, c.body, r, c.status, c.want)
		}
	}
}
