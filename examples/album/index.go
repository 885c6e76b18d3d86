package main

import (
	"context"
	"encoding/json"
	"html/template"
	"io"
	"path/filepath"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// The names of what Index writes.
const (
	pageName = "index.html"
	dataName = "index.json"
)

// Summary is what Index tells of the album.
type Summary struct {
	Pictures int      `json:"pictures"` // with their thumbnails
	Broken   []Broken `json:"broken"`
}

// Broken is a picture that is not in the album.
type Broken struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// Index writes the album's pages when all entries are there.
type Index struct {
	Title   string
	Out     string
	Entries port.In[Entry]
	Summary port.Out[Summary]
}

// JobType implements job.Typer.
func (*Index) JobType() string { return "album/index" }

// Run moves what has come into the state, one entry a key, and writes the pages at the end.
func (x *Index) Run(_ context.Context, run *worker.Run) error {
	for e, err := range x.Entries.All() {
		if err != nil {
			return err
		}
		if err := run.State().Set(e.name(), e); err != nil {
			return err
		}
	}
	if !x.Entries.Done() {
		return nil
	}
	entries, err := x.entries(run)
	if err != nil {
		return err
	}
	if err := x.write(entries); err != nil {
		return err
	}
	s := Summary{Broken: []Broken{}}
	for _, e := range entries {
		if e.Error == "" {
			s.Pictures++
		} else {
			s.Broken = append(s.Broken, Broken{e.File, e.Error})
		}
	}
	return x.Summary.Write(s)
}

// entries returns all entries, in order.
func (x *Index) entries(run *worker.Run) ([]Entry, error) {
	all, err := run.State().All()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(all))
	for n := range len(all) {
		var e Entry
		if err := json.Unmarshal(all[Picture{Number: n + 1}.name()], &e); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// write writes the pages, each as a whole.
func (x *Index) write(entries []Entry) error {
	err := replaceFile(filepath.Join(x.Out, dataName), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(entries)
	})
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(x.Out, pageName), func(w io.Writer) error {
		return page.Execute(w, map[string]any{"Title": x.Title, "Entries": entries})
	})
}

var page = template.Must(template.New("album").Funcs(template.FuncMap{
	"last": func(t []Thumb) Thumb { return t[len(t)-1] },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 16px system-ui, sans-serif; margin: 2rem; }
main { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; max-width: 12rem; }
img { max-width: 100%; height: auto; }
figcaption { overflow-wrap: anywhere; }
.broken { opacity: .6; }
</style>
<h1>{{.Title}}</h1>
<main>
{{range .Entries}}{{if .Error}}<figure class="broken"><figcaption>{{.File}}: {{.Error}}</figcaption></figure>
{{else}}{{$small := index .Thumbs 0}}<figure><a href="{{(last .Thumbs).File}}"><img src="{{$small.File}}" width="{{$small.Width}}" height="{{$small.Height}}" alt="{{.File}}" loading="lazy"></a><figcaption>{{.File}}</figcaption></figure>
{{end}}{{end}}</main>
</html>
`))
