package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// What is looked at to say which job was perhaps meant: the newest root jobs, and the newest below one.
const (
	nearRoots = 200
	nearBelow = 2000
)

// find is Client.Find, whose error says which job was perhaps meant.
func find(ctx context.Context, client *client.Client, name string) (*client.Handle, error) {
	h, err := client.Find(ctx, name)
	if !errors.Is(err, job.ErrNotFound) || ctx.Err() != nil {
		return h, err
	}
	if near := nearest(ctx, client, name); near != "" && near != name {
		err = fmt.Errorf("%w: did you mean %q?", err, near)
	}
	return h, err
}

// nearest is the job whose path is next to one that leads nowhere, or whose alias is; empty if there is none, or it cannot be found.
func nearest(ctx context.Context, client *client.Client, name string) string {
	for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
		if h, err := client.Find(ctx, name[:at]); err == nil {
			if path := nearestBelow(ctx, client, h.ID(), name[at+1:]); path != "" {
				return name[:at] + "/" + path
			}
			return ""
		}
	}
	top, rest, deep := strings.Cut(name, "/")
	alias := nearestAlias(ctx, client, top)
	if alias != "" && deep {
		return alias + "/" + rest
	}
	return alias
}

// nearestAlias is that of one of the newest root jobs.
func nearestAlias(ctx context.Context, client *client.Client, alias string) string {
	var all []string
	_, err := chunks(ctx, client, job.Filter{}, nearRoots, func(list []*job.Info) error {
		ids := make([]job.ID, len(list))
		for n, i := range list {
			ids[n] = i.ID
		}
		details, err := client.Details(ctx, ids...)
		for _, d := range details {
			all = append(all, d.Aliases...)
		}
		return err
	})
	if err != nil {
		return ""
	}
	return suggested(alias, all)
}

// nearestBelow is the path, below a job, that ends like one that leads nowhere, and is like it otherwise.
func nearestBelow(ctx context.Context, client *client.Client, top job.ID, path string) string {
	jobs := map[job.ID]*job.Info{}
	_, err := chunks(ctx, client, job.Filter{Below: top, Path: "**"}, nearBelow, func(list []*job.Info) error {
		for _, i := range list {
			jobs[i.ID] = i
		}
		return nil
	})
	if err != nil {
		return ""
	}
	var all, ending []string
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, i := range jobs {
		full, id := i.Name, i.Parent
		for ; id != top && jobs[id] != nil; id = jobs[id].Parent {
			full = jobs[id].Name + "/" + full
		}
		if id != top || i.Name == "" {
			continue
		}
		if all = append(all, full); i.Name == last {
			ending = append(ending, full)
		}
	}
	if len(ending) == 1 {
		return ending[0]
	}
	return cmp.Or(suggested(path, ending), suggested(path, all))
}

// suggested is the known word that is near another one; empty if none is.
func suggested(word string, known []string) string {
	near, ok := strings.CutPrefix(port.Suggest(word, known), "did you mean ")
	if !ok {
		return ""
	}
	return strings.Trim(strings.TrimSuffix(near, "?"), `"`)
}

// jobID is what the IDs of jobs in an error look like.
var jobID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.[0-9]+)?`)

// namedError is an error that calls jobs what commands call them.
type namedError struct {
	error
	text string
}

func (e namedError) Error() string { return e.text }
func (e namedError) Unwrap() error { return e.error }

// withNames has an error call jobs as names does, which answers with the ID of one that it does not know.
func withNames(err error, names func(job.ID) string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if named := jobID.ReplaceAllStringFunc(text, func(id string) string { return names(job.ID(id)) }); named != text {
		return namedError{err, named}
	}
	return err
}

// typed calls one job as the command line does, and others by their ID.
func typed(id job.ID, name string) func(job.ID) string {
	return func(other job.ID) string {
		if other == id {
			return name
		}
		return string(other)
	}
}
