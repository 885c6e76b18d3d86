package redisstore_test

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A job whose ports are replaced goes on listening where it listened before: only what differs becomes orders, the new
// subscriptions first. Between orders others publish.
// Ports are set beside *, which keeps those that were made on demand; what it admits stays as it is.
func TestSetPortsWithAny(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		id := e.create(job.Node{Type: "T", Ports: ports(limited(in("*"), 5), in("b"))})
		e.Check(e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "made", Items: raws("1")}))
		e.Check(e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "b", Items: raws("2")}))
		specs := []port.Spec{in("b").Spec, in("made").Spec, in("c").Spec, limited(in("*"), 7).Spec}
		for range 2 { // again changes nothing
			e.Check(e.store.SetPorts(ctx, id, specs))
			e.gets(id, port.Input, "made", []string{"1"})
			e.gets(id, port.Input, "b", []string{"2"})
		}
		e.Check(e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "other", Items: raws("3")}))
		e.gets(id, port.Input, "other", []string{"3"})
	})
}

func TestSetPortsOrdersDifferences(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	ctx := t.Context()
	id := e.create(job.Node{Type: "T", Ports: ports(heard("a", "/x", "/y"), heard("b", "/x"))})
	hub := "weir:{" + e.Namespace + "}:"
	e.Until("it has subscribed", func() bool {
		return e.Redis.SCard(ctx, hub+"ch:/x").Val() == 2 && e.Redis.SCard(ctx, hub+"ch:/y").Val() == 1
	})
	specs := []port.Spec{heard("a", "/x", "/z").Spec, heard("c", "/x").Spec}
	// The process dies before it delivers.
	e.hinder("mail_read", 1, func() { e.Check(e.store.SetPorts(ctx, id, specs)) })
	var orders []string
	for _, m := range e.Redis.XRange(ctx, strings.TrimSuffix(e.due(id), "due")+"outbox", "-", "+").Val() {
		text, _ := m.Values["order"].(string)
		orders = append(orders, text)
	}
	who := "\x1f" + string(id) + " "
	e.equal("orders", orders, []string{
		"subscribe\x1f/z" + who + "a", "subscribe\x1f/x" + who + "c",
		"unsubscribe\x1f/y" + who + "a", "unsubscribe\x1f/x" + who + "b",
	})
	e.Check(e.Redis.ZAddXX(ctx, e.due(id), past("!mail")).Err())
	e.sweep()
	e.Check(e.store.Publish(ctx, "/x", raws("1")))
	e.Check(e.store.Publish(ctx, "/y", raws("2")))
	e.Check(e.store.Publish(ctx, "/z", raws("3")))
	e.gets(id, port.Input, "a", []string{"1", "3"})
	e.gets(id, port.Input, "c", []string{"1"})
}
