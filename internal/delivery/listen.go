package delivery

import (
	"context"
	"sync"
	"time"
)

// Listen calls heard whenever jobs may have become ready anywhere, or a queue was resumed, until ctx ends: for those who take
// ready jobs and are no servers. Like a notification this is only a hint: it also comes when nobody has said anything for a while.
func (b *Broker) Listen(ctx context.Context, heard func()) {
	subscription, giveBack := b.notifier.subscription(true)
	var hearing sync.WaitGroup
	hearing.Go(func() { b.notifier.listen(ctx) })
	defer hearing.Wait()
	defer giveBack()
	for {
		patience := pollInterval
		if b.notifier.hears.Load() == 0 {
			patience = troubled
		}
		timer := time.NewTimer(patience)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-subscription:
		case <-timer.C:
		}
		timer.Stop()
		heard()
	}
}
