package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/job"
)

// Code that no process could read is refused with where it is wrong; all that the runner takes is taken, and nothing of it runs.
func TestCheckCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    handler.Definition
		want string // empty: it is right
	}{
		"node":                 {handler.Definition{Lang: handler.Node, Before: "process.exit(3)", Body: "await 1\nreturn payload"}, ""},
		"node wrong":           {handler.Definition{Lang: handler.Node, Body: "let a = 1\nreturn payload +"}, "body, line 2: SyntaxError: it ends too early, or its brackets do not match"},
		"node inside":          {handler.Definition{Lang: handler.Node, Body: "let a = = 1\nreturn a"}, "body, line 1: SyntaxError: Unexpected token '='"},
		"node closes its part": {handler.Definition{Lang: handler.Node, Body: "}); (async function () {"}, "body: SyntaxError"},
		"node before":          {handler.Definition{Lang: handler.Node, Before: "function (", Body: "return 1"}, "before, line 1: SyntaxError"},
		"python":               {handler.Definition{Lang: handler.Python, Before: "raise SystemExit(3)", BeforeEach: "", Body: "return payload"}, ""},
		"python wrong":         {handler.Definition{Lang: handler.Python, Body: "x = 1\nreturn payload +"}, "body, line 2: SyntaxError: invalid syntax"},
		"python before":        {handler.Definition{Lang: handler.Python, Before: "return 1", Body: "return 1"}, "before, line 1: SyntaxError: 'return' outside function"},
		"sh":                   {handler.Definition{Lang: handler.Shell, Body: "read line\necho $line\nexit 3"}, ""},
		"sh wrong":             {handler.Definition{Lang: handler.Shell, AfterEach: "if true; then", Body: "exit 3"}, "afterEach: "},
		"http":                 {handler.Definition{Lang: handler.HTTP, Body: "https://example.org/("}, ""},
		"a command":            {handler.Definition{Lang: "x-ruby", Body: "end end"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := runner.CheckCode(t.Context(), &c.d)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
