package redisstore_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// An Out port with very many messages of which nobody has ever read one is a warning that names
// the job, the port and the number, and says what to do.
func TestExamineUnreadPorts(t *testing.T) {
	e := durable(t)
	e.healthy()
	fill := func(id job.ID, n int) {
		e.Helper()
		items := slices.Repeat([]json.RawMessage{json.RawMessage("1")}, n)
		e.Check(e.store.Write(context.Background(), id, store.Write{Dir: port.Output, Port: "out", Items: items}))
	}
	node := func(name string) job.Node { return job.Node{Name: name, Type: "T", Ports: ports(in("in"), out("out"))} }
	few, read := e.create(node("")), e.create(node(""))
	fill(few, 9_999)
	fill(read, 10_001)
	e.Check(e.store.Take(e.Context(), read, store.Take{Dir: port.Output, Port: "out", N: 1}, "token"))
	e.examine(false).has(t, "ports", redisstore.OK, "looked at 2 jobs: no port only grows", "")
	e.examine(true).has(t, "ports", redisstore.OK, "no port only grows", "")

	root := e.create(node(""), node("kid"))
	fill(root.Nth(1), 12_345)
	for _, deep := range []bool{false, true} {
		found := e.examine(deep)
		if len(found.of("ports")) != 1 {
			t.Errorf("deep %t: %+v", deep, found.of("ports"))
		}
		id := string(root.Nth(1))
		found.has(t, "ports", redisstore.Warning, `of 1 port, .*: port out of job kid \(`+id+`\) with 12345 messages$`, "weir read "+id+" out --all.* channel")
	}
}
