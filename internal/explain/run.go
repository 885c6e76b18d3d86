package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// Number is a job's place in its tree.
func Number(id job.ID) string { return "#" + strconv.Itoa(id.Number()) }

// Run says in a line what a run did. name is what other jobs are called.
func Run(r *job.RunEntry, name func(job.ID) string) string {
	var parts []string
	if r.By != "" {
		parts = append(parts, "by "+r.By)
	}
	for _, m := range r.Read {
		parts = append(parts, "read "+movement(r, m, name))
	}
	for _, m := range r.Write {
		parts = append(parts, "wrote "+movement(r, m, name))
	}
	for i := range r.Groups {
		group := r.Groups[i]
		group.Job = r.Job
		parts = append(parts, "("+Run(&group, name)+")")
	}
	switch {
	case r.Error != "":
		parts = append(parts, "failed: "+FirstLine(r.Error))
	case len(parts) == 0:
		parts = append(parts, "ran")
	}
	return strings.Join(parts, "; ")
}

func movement(r *job.RunEntry, m job.Movement, name func(job.ID) string) string {
	where := m.Port
	if m.Job != "" && m.Job != r.Job {
		where = name(m.Job) + "." + m.Port
	}
	text := fmt.Sprintf("%d of %s", m.N, where)
	switch {
	case len(m.Data) == 1:
		text += " " + term.Fit(string(m.Data[0]), 40)
	case m.N == 1:
		text += " (too large to log)"
	}
	return text
}
