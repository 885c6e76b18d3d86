package redisstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A write with a key happens once within the hour, however often and from wherever it is repeated; other
// keys, ports and writes without one are not concerned.
func TestWriteOnce(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		id := e.create(job.Node{Type: "T", Ports: ports(in("in"), in("other"))})
		h := job.NewClient(e.store).At(id)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := job.NewClient(e.store).At(id).WriteOnce(ctx, "order-7", "in", 7); err != nil {
					e.Error(err)
				}
			})
		}
		all.Wait()
		e.lose()
		e.ok(h.WriteOnce(ctx, "order-8", "in", 8, 8))
		e.ok(h.WriteOnce(ctx, "order-7", "other", 7))
		e.ok(h.Write(ctx, "in", 9)) // which forgets tokens older than a minute, not keys
		e.ok(h.WriteOnce(ctx, "order-7", "in", 7))
		e.equal("messages in the port", e.port(id, port.Input, "in").Waiting, int64(4))
		e.equal("messages in the other one", e.port(id, port.Input, "other").Waiting, int64(1))
		left := e.rdb.PTTL(ctx, e.due(id)[:len(e.due(id))-len("due")]+"seen").Val()
		if left < job.OnceFor-time.Minute || left > job.OnceFor {
			e.Errorf("keys are kept for another %s", left)
		}
		e.fails(h.WriteOnce(ctx, "", "in", 1), job.ErrName)
	})
}
