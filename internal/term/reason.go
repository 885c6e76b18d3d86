package term

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/weirworks/weir/job"
)

var idRE = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.[0-9]+)?\b`)

// Names are the names of jobs.
type Names map[job.ID]string

// NamesOf returns the names of jobs, of those that have none their types.
func NamesOf(jobs []*job.Info) Names {
	names := make(Names, len(jobs))
	for _, i := range jobs {
		names[i.ID] = cmp.Or(i.Name, i.Type)
	}
	return names
}

// Note is the reason of a job or, if it has none, how far it says that it is.
func (n Names) Note(i *job.Info) string {
	if i.Reason == "" && i.Progress != nil && !i.Status.Settled() {
		return Clean(i.Progress.String())
	}
	return n.Reason(i)
}

// Reason is the first line of why a job is as it is, with names in place of the IDs of jobs that have one.
func (n Names) Reason(i *job.Info) string {
	line, _, _ := strings.Cut(i.Reason, "\n")
	return idRE.ReplaceAllStringFunc(line, func(id string) string { return cmp.Or(n[job.ID(id)], id) })
}
