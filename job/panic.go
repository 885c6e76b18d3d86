package job

import "strings"

// PanickedAt is where a panic began, as its stack tells: "/src/worker.go:12, in main.(*Resize).Run"; empty without
// a stack. What the Go runtime called on its own is passed over.
func (f *Failure) PanickedAt() string {
	lines := strings.Split(f.Stack, "\n")
	from := 0
	for n, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			from = n // the last one is the first that happened
		}
	}
	if from == 0 {
		return ""
	}
	for n := from + 2; n+1 < len(lines); n += 2 {
		name, _, called := cutLast(lines[n], "(")
		file, _, _ := cutLast(strings.TrimSpace(lines[n+1]), " +0x")
		if called && file != "" && !strings.HasPrefix(name, "runtime.") {
			return file + ", in " + name
		}
	}
	return ""
}

// cutLast cuts a text at the last separator in it.
func cutLast(s, sep string) (before, after string, found bool) {
	n := strings.LastIndex(s, sep)
	if n < 0 {
		return s, "", false
	}
	return s[:n], s[n+len(sep):], true
}
