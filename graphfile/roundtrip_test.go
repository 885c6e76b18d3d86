package graphfile_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/golden"
)

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// again writes f in a format and reads what was written; ok is false if the format
// lacks something that f has.
func again(t failer, f *graphfile.File, format string) (back *graphfile.File, printed string, ok bool) {
	t.Helper()
	var err error
	parse := graphfile.Parse
	switch format {
	case "yaml":
		printed, err = f.YAML()
	case "fbp":
		printed, err = f.FBP()
	default:
		write := f.JSON
		if format == "noflo" {
			write, parse = f.NoFlo, graphfile.ParseNoFlo
		}
		var data []byte
		data, err = write()
		printed, format = string(data), "json"
	}
	if err != nil {
		return nil, err.Error(), false
	}
	back, err = parse("again."+format, []byte(printed))
	if err != nil {
		t.Fatalf("%s refuses what it wrote: %v\n%s\nof\n%s", format, err, printed, dump(f))
	}
	return back, printed, true
}

// stable checks that f survives each format that can carry it, and that writing
// what was read gives the same text.
func stable(t failer, f *graphfile.File, must ...string) {
	t.Helper()
	for _, format := range []string{"yaml", "json", "noflo", "fbp"} {
		back, printed, ok := again(t, f, format)
		if !ok {
			for _, m := range must {
				if m == format {
					t.Errorf("%s: %s", format, printed)
				}
			}
			continue
		}
		plain := *f
		if plain.Literal {
			plain = *template(t, f)
		}
		if format == "yaml" || format == "json" {
			if !same(back, &plain) {
				t.Fatalf("%s changed\n%s\ninto\n%s\nby\n%s", format, dump(&plain), dump(back), printed)
			}
		} else if !reflect.DeepEqual(unordered(back), unordered(&plain)) {
			t.Fatalf("%s changed\n%s\ninto\n%s\nby\n%s", format, dump(&plain), dump(back), printed)
		}
		third, second, _ := again(t, back, format)
		if second != printed || !same(third, back) {
			t.Fatalf("%s is no fixed point: first\n%s\nthen\n%s", format, printed, second)
		}
	}
}

// template is f as a file says it: not literal.
func template(t failer, f *graphfile.File) *graphfile.File {
	t.Helper()
	back, printed, ok := again(t, f, "json")
	if !ok {
		t.Fatalf("%s", printed)
	}
	return back
}

func TestGood(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "good/*.yaml", "good/*.fbp", "good/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			f := mustParse(t, path, read(t, path))
			must := []string{"yaml", "json", "noflo"}
			if strings.HasSuffix(path, ".fbp") {
				must = append(must, "fbp")
			}
			stable(t, f, must...)
			printed, err := f.YAML()
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, path+".golden", printed)
			if noflo, err := f.NoFlo(); err != nil || strings.HasSuffix(path, ".yaml") {
				golden.Check(t, path+".noflo.golden", string(noflo))
			}
			if fbp, err := f.FBP(); err != nil {
				golden.Check(t, path+".fbp.golden", strings.ReplaceAll(err.Error(), path+":", "")+"\n")
			} else {
				golden.Check(t, path+".fbp.golden", fbp)
			}
		})
	}
}

// TestUnsaid compares what the formats of others say that they have no words for.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "unsaid/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			f := mustParse(t, filepath.Base(path), read(t, path))
			stable(t, f, "yaml", "json")
			for _, format := range []string{"noflo", "fbp"} {
				_, printed, ok := again(t, f, format)
				if ok {
					t.Errorf("%s was written:\n%s", format, printed)
				}
				golden.Check(t, path+"."+format+".golden", printed+"\n")
			}
		})
	}
}
