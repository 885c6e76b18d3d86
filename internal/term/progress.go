package term

import "github.com/weirworks/weir/job"

// progressBar is how many columns the bar of a progress has.
const progressBar = 10

// Progress draws how far a job says that it is, with a bar if it said of how much: "██████░░░░ 3/5 images". Empty: it says nothing, or
// has come to a good end.
func (s Style) Progress(i *job.Info) string {
	p := i.Progress
	if p == nil || i.Status.Settled() {
		return ""
	}
	text := Clean(p.String())
	if p.Total > 0 {
		text = Gauge(int64(p.Done), int64(p.Total), progressBar) + " " + text
	}
	return s.Text(text)
}
