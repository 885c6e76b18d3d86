package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/sandbox"
)

// TestFilesOfAPayloadGoWithIt: the next one of its process does not see them, also after an error, and sees those that before and beforeEach have left.
func TestFilesOfAPayloadGoWithIt(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	h := stored("t", handler.Definition{
		Lang: handler.Shell, BeforeEach: "echo x > each", AfterEach: "cat each",
		Body: `read p; ls >&3; mkdir -p dir; echo $p > dir/file; echo $p > .hidden; echo $p >> each; [ $p != bad ] || exit 1`,
	})
	var got []string
	for _, batch := range [][]string{{"a", "bad", "b"}, {"c"}} {
		for _, r := range do(t, p, h, batch...) {
			got = append(got, told(r))
		}
	}
	want := []string{`200 "each"`, `500 "each"`, `200 "each" x,a,bad,b`, `200 "each" x,c`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestAFullDirectoryIsEmptiedAgain: a payload that fills it fails, and those behind it do not.
func TestAFullDirectoryIsEmptiedAgain(t *testing.T) {
	t.Parallel()
	if a := sandbox.Probe(); !a.Namespaces {
		t.Skip("without namespaces only the size of each file is limited")
	}
	p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	const body = `read p; if [ $p = big ]; then for n in 1 2 3; do head -c 500000 /dev/zero > big$n || exit 1; done; fi; head -c 300000 /dev/zero > small || exit 1; cat count >&3 2>/dev/null; true`
	for name, before := range map[string]string{"without before": "", "with before": "echo 1 > count"} {
		h := stored(name, handler.Definition{Lang: handler.Shell, Before: before, Body: body, Options: handler.Options{Disk: 1 << 20}})
		got := ""
		for _, batch := range [][]string{{"big", "a"}, {"b"}} {
			for _, r := range do(t, p, h, batch...) {
				got += fmt.Sprint(r.Status, string(r.Value), " ")
			}
		}
		want := "500 200 200 "
		if before != "" {
			want = `500 200"1" 200"1" `
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestWhatBeforeLeftIsMadeAnewAfterAnError: a payload that spoils it and fails has its process replaced.
func TestWhatBeforeLeftIsMadeAnewAfterAnError(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	h := stored("t", handler.Definition{Lang: handler.Shell, Before: "echo good > kept", Body: `read p; if [ $p = bad ]; then echo spoilt > kept; exit 1; fi; cat kept >&3`})
	var got []string
	for _, text := range []string{"a", "bad", "b"} {
		got = append(got, told(do(t, p, h, text)[0]))
	}
	if all := strings.Join(got, "|"); all != `200 "good"|500|200 "good"` {
		t.Errorf("got %s", all)
	}
}
