package component

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Component is a ready type of worker.
type Component interface {
	worker.Worker
	job.TypeNamer
	// Describe tells in one line what the component does.
	Describe() string
	// Validate names every bad parameter. The error wraps job.ErrConfig.
	Validate() error
}

// Policy says what jobs may do outside of Weir. Those who create jobs choose their
// parameters; the policy belongs to whoever runs the engine. The zero value lets jobs
// read and write files below the current directory, ask public HTTP servers, and run
// no programs.
type Policy struct {
	// Root is the directory below which ReadFile and WriteFile work; symbolic links do
	// not lead out of it. Empty means the current directory: a project's own files are
	// within reach without any setting and nothing else is. "/" admits all files.
	Root string
	// NoFiles lets jobs read and write no files at all: where others create jobs than who
	// owns the files, and nobody chose a Root for them.
	NoFiles bool
	// HTTP says which servers HTTPRequest may ask.
	HTTP HTTPPolicy
	// Programs are those that Exec may run, written as jobs write them: a name that is
	// looked up in PATH or an absolute path. Empty means none.
	Programs []string
	// Types are workers that Each starts besides components, so that it knows their
	// ports. They must be given to the engine too.
	Types []worker.Worker
}

// Components returns one value of each component, with the policy set.
func Components(p Policy) []Component {
	list := []Component{
		&Batch{},
		&Collect{},
		&Cron{},
		&Debounce{},
		&Dedupe{},
		&Delay{},
		&Emit{},
		&Every{},
		&Exec{policy: execPolicy{programs: slices.Clone(p.Programs), root: p.Root}},
		&Filter{},
		&FlatMap{},
		&Gate{},
		&HTTPRequest{policy: p.HTTP},
		&Join{},
		&Map{},
		&Merge{},
		&MergeOrdered{},
		&MergePriority{},
		&MergeSorted{},
		&ReadFile{files: filePolicy{p.Root, p.NoFiles}},
		&Reduce{},
		&Route{},
		&Tee{},
		&Throttle{},
		&Ticker{},
		&Window{},
		&WriteFile{files: filePolicy{p.Root, p.NoFiles}},
		&Zip{},
	}
	known := slices.Clone(p.Types)
	for _, c := range list {
		known = append(known, c)
	}
	list = append(list, &Each{known: known})
	slices.SortFunc(list, func(a, b Component) int { return strings.Compare(a.JobType(), b.JobType()) })
	return list
}

// All returns one value of each component, for the Workers of a worker.Config.
func All(p Policy) []worker.Worker {
	var all []worker.Worker
	for _, c := range Components(p) {
		all = append(all, c)
	}
	return all
}

// Doc describes a component for people.
type Doc struct {
	Type    string      `json:"type"`
	Summary string      `json:"summary"`
	Ports   []port.Spec `json:"ports"` // In ports first; the type of messages as in Param
	Params  []Param     `json:"params,omitempty"`
	Pure    bool        `json:"pure,omitempty"` // runs have no side effects outside Weir, see worker.Options
}

// PureLine is what pages and commands say of a component with Doc.Pure.
const PureLine = "Pure: its runs have no side effects outside Weir."

// Param describes one parameter of a component.
type Param struct {
	Name string `json:"name"`
	Type string `json:"type"` // as written in JSON
	Doc  string `json:"doc"`
}

// Catalogue describes all components, sorted by type.
func Catalogue() ([]Doc, error) {
	var docs []Doc
	for _, c := range Components(Policy{}) {
		layout, err := port.Describe(reflect.TypeOf(c))
		if err != nil {
			return nil, err
		}
		configured, ok := c.(worker.Configured)
		docs = append(docs, Doc{
			Type: c.JobType(), Summary: c.Describe(), Ports: portsOf(c, layout), Params: paramsOf(layout.Type()),
			Pure: ok && configured.WorkerOptions().Pure,
		})
	}
	return docs, nil
}

// portsOf lists the ports of a component, with the types of their messages as JSON has them.
func portsOf(c Component, layout *port.Layout) []port.Spec {
	specs, types := job.PortsOf(c, layout), layout.Types()
	slices.SortStableFunc(specs, func(a, b port.Spec) int { return cmp.Compare(a.Dir, b.Dir) })
	for i := range specs {
		specs[i].Type = "any" // those that a parameter names
		if t := types[port.TypeKey(specs[i].Dir, specs[i].Name)]; t != nil {
			specs[i].Type = shape(t)
		}
	}
	return specs
}

// shape is the type of a message, with the fields of an object.
func shape(t reflect.Type) string {
	if t.Kind() != reflect.Struct {
		return jsonType(t)
	}
	var fields []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name+": "+jsonType(t.Field(i).Type))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// paramsOf lists the fields that have a doc tag.
func paramsOf(t reflect.Type) []Param {
	var params []Param
	for i := range t.NumField() {
		f := t.Field(i)
		doc, ok := f.Tag.Lookup("doc")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		params = append(params, Param{Name: name, Type: jsonType(f.Type), Doc: doc})
	}
	return params
}

// jsonType is what a value of a parameter's type is in JSON.
func jsonType(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[time.Time]():
		return "time"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "any" // json.RawMessage
		}
		return "list of " + jsonType(t.Elem())
	}
	return "any"
}

// pure is embedded by components that do nothing outside Weir.
type pure struct{}

// WorkerOptions implements worker.Configured.
func (pure) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// acting is embedded instead by those that have side effects outside Weir: a crash repeats those
// of one run at most.
type acting struct{}

// WorkerOptions implements worker.Configured.
func (acting) WorkerOptions() worker.Options {
	return worker.Options{CommitEachRun: true}
}
