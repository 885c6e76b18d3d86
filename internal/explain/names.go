package explain

import (
	"context"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// Names returns what jobs are called in commands: an alias and the names below it, or the ID if there is no such way to them.
// Each job is looked up once. What cannot be read has its ID.
func Names(ctx context.Context, client *client.Client) func(job.ID) string {
	known := map[job.ID]string{} // empty: there is no way
	var path func(id job.ID) string
	path = func(id job.ID) string {
		if name, ok := known[id]; ok {
			return name
		}
		known[id] = ""
		h := client.At(id)
		if all, err := h.Aliases(ctx); err == nil && len(all) > 0 {
			known[id] = all[0]
			return all[0]
		}
		info, err := h.Info(ctx)
		if err != nil || info.Parent == "" || job.CheckName("job", info.Name) != nil {
			return ""
		}
		if above := path(info.Parent); above != "" {
			known[id] = above + "/" + info.Name
		}
		return known[id]
	}
	return func(id job.ID) string {
		if name := path(id); name != "" {
			return name
		}
		return string(id)
	}
}
