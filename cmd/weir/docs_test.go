package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fence is a block of code in Markdown, with its language.
var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// TestDocs: what docs/graphs.md shows is what is there, and what README and docs/schedules.md show of commands. Commands print what it says, pieces
// of files are in examples/graphs, and Go is in a test.
func TestDocs(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	t.Setenv("COLUMNS", "")
	page, err := os.ReadFile("docs/graphs.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{
		"go": {"graph/guide_test.go"}, "yaml": glob(t, "examples/graphs/*.yaml"), "": glob(t, "examples/graphs/*.fbp"),
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(readme), -1) {
		if block[1] == "console" {
			checkCommand(t, block[2])
		}
	}
	schedules, err := os.ReadFile("docs/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fence.FindAllStringSubmatch(string(schedules), -1) {
		if block[1] == "console" {
			checkCommand(t, block[2])
		}
	}
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		language, text := block[1], block[2]
		if language == "console" {
			checkCommand(t, text)
			continue
		}
		found := slices.ContainsFunc(files[language], func(name string) bool {
			data, err := os.ReadFile(name)
			return err == nil && strings.Contains(string(data), text)
		})
		if !found {
			t.Errorf("in none of %q:\n%s", files[language], text)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([\w./]+)\)`).FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("docs", link[1])); err != nil {
			t.Error(err)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(found))
	}
	return found
}

// checkCommand runs the first line of a block; the others are what it prints.
func checkCommand(t *testing.T, block string) {
	t.Helper()
	line, want, _ := strings.Cut(block, "\n")
	words := wordsOf(line)
	if len(words) < 3 || words[0] != "$" || words[1] != "weir" {
		t.Fatalf("no command: %s", line)
	}
	var out bytes.Buffer
	run(t.Context(), words[2:], &out, &out)
	got := out.String()
	if words[2] == "run" { // outputs come in any order
		got, want = sorted(got), sorted(want)
	}
	if got != want {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", line, got, want)
	}
}

// wordsOf splits a command line at blanks that are not in quotes.
func wordsOf(line string) (words []string) {
	for i, part := range strings.Split(line, "'") { // each second part is in quotes
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestExamples: each graph in examples/graphs does what its file says.
func TestExamples(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for name, want := range map[string]string{
		"batch.fbp": `[{"name":"Ada Lovelace","born":"1815","city":"London"},{"name":"Grace Hopper","born":"1906","city":"New York"},` +
			`{"name":"Zuse, Konrad","born":"1910","city":"Berlin"},{"name":"José Valím","born":"?","city":"Kraków"},` +
			`{"name":"Barbara Liskov","born":"1939","city":"Los Angeles"}]` + "\n",
		"collatz.yaml": "6 takes 8 steps\n7 takes 16 steps\n27 takes 111 steps\n",
		"people.yaml": `{"born":1815,"city":"London","name":"Ada Lovelace"}` + "\n" + `{"born":1906,"city":"New York","name":"Grace Hopper"}` + "\n" +
			`{"born":1910,"city":"Berlin","name":"Zuse, Konrad"}` + "\n" + `{"born":1939,"city":"Los Angeles","name":"Barbara Liskov"}` + "\n",
		"status.yaml": "bad: -- log rotated --\ncounts: 200 4\ncounts: 404 3\ncounts: 302 1\ncounts: 500 1\n",
		"words.yaml":  "derivative 17\nshall 15\nlicense 14\nworks 13\n",
	} {
		args := []string{"run", "examples/graphs/" + name}
		if name == "words.yaml" {
			args = append(args, "--param", "top=4") // no two of which are as frequent
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 0 || sorted(out.String()) != sorted(want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant:\n%s", name, code, out.String(), errs.String(), want)
		}
	}
	if found := append(glob(t, "examples/graphs/*.yaml"), glob(t, "examples/graphs/*.fbp")...); len(found) != 5 {
		t.Errorf("the examples are %q: put them all in this test", found)
	}
}

// TestReadmeFiles: the files that the README gives to examples are there.
func TestReadmeFiles(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	given := regexp.MustCompile("`go run \\./examples/\\w+ ([^` ]+\\.\\w+)`").FindAllSubmatch(raw, -1)
	if len(given) == 0 {
		t.Error("the README gives no file to an example")
	}
	for _, m := range given {
		if _, err := os.Stat(filepath.Join("..", "..", string(m[1]))); err != nil {
			t.Error(err)
		}
	}
}
