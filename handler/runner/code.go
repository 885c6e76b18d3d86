package runner

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
)

//go:embed code.js
var codeJS string

//go:embed code.py
var codePy string

// parseTime is how long the code of a handler may be looked at.
const parseTime = 5 * time.Second

// CheckCode parses the code of a definition with the program of its language on this machine. It runs nothing of it. The error wraps job.ErrValue
// and says which part is wrong, and where. Where the program is not there, and for languages that have none, all code is taken.
func CheckCode(ctx context.Context, d *handler.Definition) error {
	parts := [][2]string{{"before", d.Before}, {"beforeEach", d.BeforeEach}, {"body", d.Body}, {"afterEach", d.AfterEach}}
	var wrong string
	switch d.Lang {
	case handler.Node:
		wrong = checkTogether(ctx, d.Lang, []string{"-e", codeJS}, parts)
	case handler.Python:
		wrong = checkTogether(ctx, d.Lang, []string{"-I", "-c", codePy}, parts)
	case handler.Shell:
		for _, part := range parts {
			if said, failed := parse(ctx, d.Lang, []string{"-n"}, part[1]); failed && said != "" {
				first, _, _ := strings.Cut(said, "\n")
				wrong = part[0] + ": " + first
				break
			}
		}
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("%w of a handler: %s", job.ErrValue, strings.ToValidUTF8(wrong, "\uFFFD"))
}

// checkTogether has one process parse all parts.
func checkTogether(ctx context.Context, lang string, args []string, parts [][2]string) string {
	text, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	said, failed := parse(ctx, lang, args, string(text))
	about := func(part [2]string) bool { return strings.HasPrefix(said, part[0]) }
	if !failed || !slices.ContainsFunc(parts, about) { // a program that cannot parse at all is no fault of the code
		return ""
	}
	return said
}

// parse gives a program the code, and returns what it says of it, and whether it ran and failed.
func parse(ctx context.Context, lang string, args []string, code string) (said string, failed bool) {
	path, err := find(defaultCommands[lang][0])
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, parseTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // of this package
	cmd.Env, cmd.Stdin = []string{"PATH=" + systemPath, "LANG=C.UTF-8"}, strings.NewReader(code)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return strings.TrimSpace(out.String()), err != nil && ctx.Err() == nil && cmd.ProcessState != nil
}
