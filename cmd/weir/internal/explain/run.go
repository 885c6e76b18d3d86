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

// Run says in a line what a run did.
func Run(r *job.RunEntry) string {
	var parts []string
	if r.By != "" {
		parts = append(parts, "by "+r.By)
	}
	for _, m := range r.Read {
		parts = append(parts, "read "+movement(m))
	}
	for _, m := range r.Write {
		parts = append(parts, "wrote "+movement(m))
	}
	for i := range r.Groups {
		parts = append(parts, "("+Run(&r.Groups[i])+")")
	}
	if r.Error != "" {
		parts = append(parts, "failed: "+FirstLine(r.Error))
	}
	return strings.Join(parts, "; ")
}

func movement(m job.Movement) string {
	where := fmt.Sprintf("%d of %s %s", m.N, Number(m.Job), m.Port)
	if m.Job == "" {
		where = fmt.Sprintf("%d of %s", m.N, m.Port)
	}
	if len(m.Data) == 1 {
		where += " " + term.Fit(string(m.Data[0]), 40)
	}
	return where
}
