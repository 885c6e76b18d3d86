package redisstore_test

import (
	"testing"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A process that sends orders to many servers for the first time learns which lives they have
// and delivers, in the one call: nobody waits for the sweeper.
func TestFirstOrdersToManyShards(t *testing.T) {
	each(t, func(e *env) {
		subscription := in("in")
		subscription.Channels = []string{"/news"}
		var subscriptions []job.ID
		for shard := range shards {
			id := newID(e)
			for id.Shard(shards) != shard {
				id = newID(e)
			}
			e.createAs(id, job.Node{Type: "T", Ports: ports(subscription)})
			subscriptions = append(subscriptions, id)
		}
		e.Check(e.store.Publish(e.Context(), "/news", raws("1")))
		for _, id := range subscriptions {
			if items := e.peek(id, port.Input, "in"); len(items) != 1 {
				e.Errorf("the job of shard %d has %q", id.Shard(shards), items)
			}
		}
	})
}
