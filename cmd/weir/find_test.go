package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// family starts a tree demo with parcels/ship, parcels/pack and mail in it.
func family(t *testing.T, url string) {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	_, err := client.New(store).Start(t.Context(), &planned{Nodes: []job.Node{
		{Name: "demo", Type: "demo", Graph: true},
		{Name: "parcels", Type: "parcels", Graph: true},
		{Name: "ship", Type: "Ship", Parent: 1},
		{Name: "pack", Type: "Pack", Parent: 1},
		{Name: "mail", Type: "Mail"},
	}}, job.Alias("demo"))
	enginetest.Check(t, err)
}

// A job that is not there is refused with the nearest that is.
func TestDidYouMeanJob(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	family(t, url)
	for name, want := range map[string]string{
		"demo/ship":         `did you mean "demo/parcels/ship"?`,
		"demo/parcels/shop": `did you mean "demo/parcels/ship"?`,
		"demo/parcel/ship":  `did you mean "demo/parcels/ship"?`,
		"demo/mial":         `did you mean "demo/mail"?`,
		"dmo":               `did you mean "demo"?`,
		"dmo/mail":          `did you mean "demo/mail"?`,
		"demo/elsewhere":    `has no child "elsewhere"`,
		"somebody":          `no job has the alias "somebody"`,
	} {
		for _, command := range []string{"why", "show", "tree"} {
			var out bytes.Buffer
			code := run(t.Context(), []string{command, name, "--redis", url}, &out, &out)
			said := strings.TrimSpace(out.String())
			if code != exitNotFound || !strings.HasSuffix(said, want) {
				t.Errorf("weir %s %s: exit code %d, %s", command, name, code, said)
			}
		}
	}
}

// Behind a slash the shell completes the names of children.
func TestCompletesPaths(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	family(t, url)
	for start, want := range map[string]string{
		"demo/":          "demo/mail demo/parcels",
		"demo/p":         "demo/parcels",
		"demo/parcels/":  "demo/parcels/pack demo/parcels/ship",
		"demo/parcels/s": "demo/parcels/ship",
		"demo/x":         "",
		"nobody/":        "",
	} {
		got := strings.Fields(strings.Split(weir(t, url, "__complete", "why", start), ":")[0])
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", start, got, want)
		}
	}
}

// An alias with a slash that is the path to another job, too, names neither: an act must not come to the wrong one.
func TestAmbiguousPath(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	family(t, url)
	store := enginetest.Open(t, redisstore.Config{URL: url})
	for _, alias := range []string{"demo/mail", "demo/other", "else/where"} {
		_, err := client.New(store).Start(t.Context(), &planned{Nodes: []job.Node{{Name: "two", Type: "two", Graph: true}, {Name: "ship", Type: "Ship"}}}, job.Alias(alias))
		enginetest.Check(t, err)
	}
	for name, want := range map[string]string{
		"demo/mail": `"demo/mail" is an alias of job `, "demo/other": "", "else/where": "", "else/where/ship": "", "demo/other/ship": "", "demo/parcels/ship": "",
	} {
		var out bytes.Buffer
		code := run(t.Context(), []string{"show", name, "--redis", url}, &out, &out)
		if (code == 0) != (want == "") || !strings.Contains(out.String(), want) {
			t.Errorf("weir show %s: exit code %d, %s", name, code, out.String())
		}
	}
}
