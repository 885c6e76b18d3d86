package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// TestTriggerSecret: the secret of a trigger comes from the environment, can be changed, and is not shown.
//
//nolint:paralleltest // the environment is the process's
func TestTriggerSecret(t *testing.T) {
	url := redistest.Start(t).URL()
	serving(t, url)
	const secret, other = "a secret of a webhook", "another of the same hook"
	t.Setenv("HOOK_SECRET", secret)
	t.Setenv("OTHER_SECRET", other)
	t.Setenv("SHORT_SECRET", "short")
	weir(t, url, "trigger", "add", "--type", "map", "--args", `{"expr":"it"}`, "--verify", "github", "--secret-env", "HOOK_SECRET", "--alias", "hook")
	s := triggerOf(t, url, "hook")
	if s.Definition.Verify == nil || s.Definition.Verify.Scheme != "github" {
		t.Errorf("the trigger is %+v", s)
	}
	store := enginetest.Open(t, redisstore.Config{URL: url})
	kept := func(want string) {
		t.Helper()
		if got, err := store.Secret(t.Context(), s.ID); got != want || err != nil {
			t.Errorf("the secret is %q, %v, want %q", got, err, want)
		}
	}
	kept(secret)
	weir(t, url, "trigger", "change", "hook", "--secret-env", "OTHER_SECRET")
	kept(other)
	for _, line := range []string{"show hook -o json", "trigger show hook", "state hook", "log hook", "tree hook", "doctor --deep"} {
		var out bytes.Buffer
		run(t.Context(), append([]string{"--redis", url}, strings.Fields(line)...), &out, &out)
		if strings.Contains(out.String(), other) {
			t.Errorf("weir %s shows the secret:\n%s", line, out.String())
		}
	}
	for line, want := range map[string]string{
		"add --type map --verify github":                                       "go together",
		"add --type map --secret-env HOOK_SECRET":                              "go together",
		"add --type map --verify githib --secret-env HOOK_SECRET":              `did you mean "github"`,
		"add --type map --verify github --secret-env NO_SECRET":                "no variable NO_SECRET",
		"add --type map --verify github --secret-env SHORT_SECRET":             "5 bytes: use 16 to 512",
		"add --channel /a --type map --verify github --secret-env HOOK_SECRET": "verify is for messages",
	} {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"--redis", url, "trigger"}, strings.Fields(line)...), &out, &out)
		if code != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("trigger %s: %d %s", line, code, out.String())
		}
	}
}
