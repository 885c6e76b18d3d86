package term

import (
	"strings"
	"time"

	"github.com/weirworks/weir/job"
)

// Lock says whose a lock is, since when and until when: "by ann, since 3m, until 15:04:05Z, in 57m".
func (s Style) Lock(l job.LockInfo) string {
	var parts []string
	if l.By != "" {
		parts = append(parts, "by "+l.By)
	}
	if !l.Since.IsZero() {
		parts = append(parts, "since "+s.Age(l.Since))
	}
	until := "until " + l.Until.UTC().Format(time.RFC3339)
	if !s.ISO {
		until += ", " + s.In(l.Until)
	}
	return strings.Join(append(parts, until), ", ")
}
