package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Move is a slot of a cluster on its way from one node to another, as redis-cli moves it: while
// it is under way some of its keys are there already and some are still here.
type Move struct {
	c        *Cluster
	slot     int
	from, to int // nodes
	source   *redis.Client
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(ctx context.Context, key string) (int, error) {
	client := c.node(0)
	defer client.Close()
	slot, err := client.ClusterKeySlot(ctx, key).Result()
	return int(slot), err
}

// Owner returns the node that serves a slot.
func (c *Cluster) Owner(ctx context.Context, slot int) (int, error) {
	for i := range c.Nodes {
		client := c.node(i)
		slots, err := client.ClusterNodes(ctx).Result()
		_ = client.Close()
		if err != nil {
			return 0, err
		}
		for line := range strings.SplitSeq(slots, "\n") {
			if strings.Contains(line, "myself") && serves(strings.Fields(line)[8:], slot) {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("no node serves slot %d", slot)
}

// serves tells whether a slot is among ranges like "3" and "5-9".
func serves(ranges []string, slot int) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		first, last, several := strings.Cut(text, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			return false // a slot that is on its way: [7->-…
		}
		b := a
		if several {
			b, _ = strconv.Atoi(last)
		}
		return a <= slot && slot <= b
	})
}

// StartMove begins to move a slot to a node. No key of it is moved yet.
func (c *Cluster) StartMove(ctx context.Context, slot, to int) (*Move, error) {
	from, err := c.Owner(ctx, slot)
	if err != nil {
		return nil, err
	}
	if from == to {
		return nil, fmt.Errorf("node %d serves slot %d already", to, slot)
	}
	m := &Move{c, slot, from, to, c.node(from)} // whose connections end with Finish
	if err = m.set(ctx, to, "IMPORTING", from); err == nil {
		err = m.set(ctx, from, "MIGRATING", to)
	}
	return m, err
}

// set tells a node what happens to the slot with another one.
func (m *Move) set(ctx context.Context, node int, what string, other int) error {
	peer := m.c.node(other)
	defer peer.Close()
	id, err := peer.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return err
	}
	client := m.c.node(node)
	defer client.Close()
	return client.Do(ctx, "CLUSTER", "SETSLOT", m.slot, what, id).Err()
}

// Keys returns the first n keys of the slot that are still at the node which it leaves.
func (m *Move) Keys(ctx context.Context, n int) ([]string, error) {
	return m.source.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
}

// Key moves one key. One that has ended meanwhile is none to move.
func (m *Move) Key(ctx context.Context, key string) error {
	return m.source.Do(ctx, "MIGRATE", "127.0.0.1", m.c.Nodes[m.to].port, key, 0, 5000).Err()
}

// Finish moves all keys that are left, one by one, and makes the other node the owner of the slot.
func (m *Move) Finish(ctx context.Context) error {
	defer m.source.Close()
	for {
		keys, err := m.Keys(ctx, 100)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			if err := m.Key(ctx, key); err != nil {
				return err
			}
		}
	}
	order := []int{m.to, m.from} // first who has the keys, so that somebody always serves them
	for i := range m.c.Nodes {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	for _, node := range order {
		if err := m.set(ctx, node, "NODE", m.to); err != nil {
			return err
		}
	}
	return m.c.agree(ctx)
}

// agree waits until all nodes say the same of who serves what, and since when: a slot that moves on
// sooner may come to be nobody's.
func (c *Cluster) agree(ctx context.Context) error {
	for {
		views := map[string]bool{}
		for i := range c.Nodes {
			client := c.node(i)
			text, err := client.ClusterNodes(ctx).Result()
			_ = client.Close()
			if err != nil {
				return err
			}
			var view []string
			for line := range strings.Lines(text) {
				f := strings.Fields(line)
				view = append(view, fmt.Sprint(f[0], f[6], f[8:])) // ID, epoch, slots
			}
			slices.Sort(view)
			views[strings.Join(view, "\n")] = true
		}
		if len(views) == 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the nodes do not agree: %w", ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// MoveSlot moves a slot to a node, key by key.
func (c *Cluster) MoveSlot(ctx context.Context, slot, to int) error {
	m, err := c.StartMove(ctx, slot, to)
	if err != nil {
		return err
	}
	return m.Finish(ctx)
}

// AddNode starts one more master, without slots, which the others know.
func (c *Cluster) AddNode(t TB) *Server {
	t.Helper()
	n, err := launch(t.TempDir(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.t = t
	t.Cleanup(n.Kill)
	c.Nodes = append(c.Nodes, n)
	if err := c.meet(len(c.Nodes) - 1); err != nil {
		t.Fatal(err)
	}
	return n
}

// meet introduces a node to all others and waits until each of them knows it.
func (c *Cluster) meet(node int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := c.node(node)
	defer client.Close()
	err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", len(c.Nodes)).Err()
	for i, n := range c.Nodes {
		if i != node {
			err = errors.Join(err, client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", n.port, n.bus).Err())
		}
	}
	if err != nil {
		return err
	}
	for i := range c.Nodes {
		one := c.node(i)
		defer one.Close()
		for {
			info, err := one.ClusterInfo(ctx).Result()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", len(c.Nodes))) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("node %d does not know the new one: %w", i, errors.Join(ctx.Err(), err))
			case <-time.After(4 * pollInterval):
			}
		}
	}
	return nil
}

// node returns a client of one node.
func (c *Cluster) node(i int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.Nodes[i].Addr()})
}
