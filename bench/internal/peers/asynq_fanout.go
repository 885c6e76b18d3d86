package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/hibiken/asynq"

	"github.com/weirworks/weir/bench/internal/lab"
)

// The tasks of a family. Asynq has no children and no joins: a child leaves its result in a
// list, and the one that finds the list full enqueues the join.
const (
	taskParent = "family:parent"
	taskChild  = "family:child"
	taskJoin   = "family:join"
)

// relative is the payload of the tasks of a family.
type relative struct {
	Tree, Number, Children int
}

func (r relative) task(kind string) *asynq.Task {
	payload, _ := json.Marshal(r) // three numbers
	return asynq.NewTask(kind, payload)
}

func (r relative) results() string { return fmt.Sprintf("bench:family:%d", r.Tree) }

// asynqFamilies handles the tasks of families.
type asynqFamilies struct {
	lab    *lab.Lab
	client *asynq.Client
	ledger *lab.Ledger
}

func (f *asynqFamilies) mux() *asynq.ServeMux {
	mux := asynq.NewServeMux()
	for kind, handle := range map[string]func(context.Context, relative) error{
		taskParent: f.parent, taskChild: f.child, taskJoin: f.join,
	} {
		mux.HandleFunc(kind, func(ctx context.Context, t *asynq.Task) error {
			var r relative
			if err := json.Unmarshal(t.Payload(), &r); err != nil {
				return err
			}
			return handle(ctx, r)
		})
	}
	return mux
}

func (f *asynqFamilies) parent(ctx context.Context, r relative) error {
	for r.Number = range r.Children {
		if _, err := f.client.EnqueueContext(ctx, r.task(taskChild)); err != nil {
			return err
		}
	}
	return nil
}

func (f *asynqFamilies) child(ctx context.Context, r relative) error {
	have, err := f.lab.Redis.RPush(ctx, r.results(), 2*r.Number).Result()
	if err != nil || have < int64(r.Children) {
		return err
	}
	_, err = f.client.EnqueueContext(ctx, r.task(taskJoin))
	return err
}

func (f *asynqFamilies) join(ctx context.Context, r relative) error {
	results, err := f.lab.Redis.LRange(ctx, r.results(), 0, -1).Result()
	if err != nil {
		return err
	}
	total := 0
	for _, text := range results {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		total += n
	}
	if want := r.Children * (r.Children - 1); total != want {
		f.ledger.Wrong(fmt.Errorf("family %d: the total is %d instead of %d", r.Tree, total, want))
	}
	f.ledger.Arrived(lab.Item(r.Tree))
	return nil
}

// asynqFanout runs families.
func asynqFanout(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Trees
	f := &asynqFamilies{lab: l, client: asynq.NewClientFromRedisClient(l.Redis), ledger: lab.NewLedger(n, n)}
	var used lab.Usage
	err := asynqServe(l, f.mux(), asynqPoll, nil, func() (err error) {
		used, err = l.Flood(ctx, n, f.ledger, func(ctx context.Context, i int) error {
			_, err := f.client.EnqueueContext(ctx, relative{Tree: i, Children: l.Size.Children}.task(taskParent))
			return err
		})
		return errors.Join(err, f.ledger.Once())
	})
	return used.Throughput("fanout", n, "trees"), err
}
