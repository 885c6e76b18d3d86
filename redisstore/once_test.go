package redisstore_test

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A key makes Start and Create happen once, also when the process died before the job was created.
func TestPoint11Keys(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		first, err := c.Start(e.Context(), one("A"), job.Key("k"))
		e.Check(err)
		again, err := c.Start(e.Context(), one("B"), job.Key("k"))
		e.Check(err)
		e.equal("IDs", again.ID(), first.ID())
		e.equal("created", []bool{first.Created(), again.Created()}, []bool{true, false})
		other, err := c.Start(e.Context(), one("A"), job.Key("k2"))
		e.Check(err)
		e.equal("another key starts another", other.Created() && other.ID() != first.ID(), true)
		for _, bad := range []string{"", strings.Repeat("x", 129)} {
			_, err = c.Start(e.Context(), one("A"), job.Key(bad))
			e.fails(err, job.ErrName)
		}
		died := newID(e) // the process died behind its first step
		_, err = e.store.Once(e.Context(), "start half", died)
		e.Check(err)
		half, err := c.Start(e.Context(), one("A"), job.Key("half"))
		e.Check(err)
		e.equal("what was begun is finished", []any{half.ID(), half.Created()}, []any{died, true})

		e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: "default", Ports: []port.Spec{{Name: "in", Dir: port.Input}}}}))
		for _, n := range []job.New{{Type: "T", Key: "k"}, {Type: "T", Key: "kid", Parent: first.ID(), Name: "kid"}, {Type: "T", Key: "a", Alias: "alias"}} {
			made, err := c.Create(e.Context(), n)
			e.Check(err)
			same, err := c.Create(e.Context(), n)
			e.Check(err)
			e.equal("the same job", []any{same.ID(), same.Created(), made.Created()}, []any{made.ID(), false, true})
		}
	})
}
