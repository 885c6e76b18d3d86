package job_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// fill gives each field of a struct a value, and each list one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 2)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}

// each calls see with all that a plan's digest must depend on set to its zero value in turn.
func each(v reflect.Value, path string, see func(path string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	v.SetZero()
	see(path)
	v.Set(was)
	switch {
	case v.Kind() == reflect.Slice:
		each(v.Index(0), path+"[0]", see)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != "Labels" && f.Name != "InstanceOf" && f.Name != "Memo" && f.Name != "InTime" {
				each(v.Field(i), path+"."+f.Name, see)
			}
		}
	}
}

// The digest depends on every field of a plan's jobs, ports and wires but the labels and InstanceOf.
func TestDigestDependsOnEveryField(t *testing.T) {
	t.Parallel()
	plan := &job.Plan{Nodes: []job.Node{{Type: "g", Graph: true}, {}}}
	node := reflect.ValueOf(&plan.Nodes[1]).Elem()
	fill(node)
	want := plan.Digest()
	n := 0
	each(node, "node", func(path string) {
		if n++; plan.Digest() == want {
			t.Errorf("%s makes no difference", path)
		}
	})
	if n < 30 || plan.Digest() != want {
		t.Errorf("%d fields were changed, and the plan is then %+v", n, plan)
	}
	plan.Nodes[1].Labels, plan.Nodes[1].InstanceOf, plan.Parent = nil, "", "p"
	plan.Nodes[1].At = plan.Nodes[1].At.UTC()
	if plan.Digest() != want {
		t.Error("labels, InstanceOf, the parent or a time zone make another definition")
	}
}

// What one field ends with is not taken for what the next one begins with.
func TestDigestIsUnambiguous(t *testing.T) {
	t.Parallel()
	node := func(n job.Node) []job.Node { return []job.Node{n} }
	ports := func(p ...job.Port) []job.Node { return node(job.Node{Ports: p}) }
	target := job.Target{Node: 1, Port: "in"}
	seen := map[string]int{}
	for i, nodes := range [][]job.Node{
		node(job.Node{Name: "ab", Type: "c"}), node(job.Node{Name: "a", Type: "bc"}),
		node(job.Node{Name: "1 a", Type: ""}), node(job.Node{Name: "", Type: "1 a"}),
		{{Name: "a"}, {Name: "b"}},
		{{Name: "a"}, {Type: "b"}},
		ports(job.Port{Initial: []json.RawMessage{[]byte(`1`), []byte(`2`)}}), ports(job.Port{Initial: []json.RawMessage{[]byte(`12`)}}),
		ports(job.Port{Spec: port.Spec{Channels: []string{"/a", "/b"}}}), ports(job.Port{Spec: port.Spec{Channels: []string{"/a/b"}}}),
		ports(job.Port{Edges: []job.Edge{{target, target}}}), ports(job.Port{Edges: []job.Edge{{target}, {target}}}),
		ports(job.Port{Sources: 1}, job.Port{}), ports(job.Port{}, job.Port{Sources: 1}), ports(job.Port{Sources: 1, Loops: 11}), ports(job.Port{Sources: 11, Loops: 1}),
	} {
		digest := (&job.Plan{Nodes: append([]job.Node{{Type: "g", Graph: true}}, nodes...)}).Digest()
		if other, is := seen[digest]; is {
			t.Errorf("plans %d and %d have one digest", other, i)
		}
		seen[digest] = i
	}
	if d := (&job.Plan{Nodes: []job.Node{{Type: "T"}}}).Digest(); d != "" {
		t.Errorf("a lone job has the digest %q", d)
	}
}
