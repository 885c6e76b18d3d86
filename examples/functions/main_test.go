package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestFunctions(t *testing.T) {
	t.Parallel()
	lines := "the cat and the dog\n\na a b b b\n"
	var out bytes.Buffer
	if err := run(t.Context(), "", strings.NewReader(lines), &out); err != nil {
		t.Fatal(err)
	}
	want := `top: {"word":"the","times":2}
top: {"word":"b","times":3}
rejected: {"error":"there are no words","status":400,"data":[]}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
