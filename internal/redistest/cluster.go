package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterSize  = 3
	clusterSlots = 16384
)

// Cluster is a Redis Cluster of three masters without replicas; node i serves
// the i-th third of the slots.
type Cluster struct {
	Nodes []*Server
}

// StartCluster runs a cluster on free ports of 127.0.0.1 and returns once every
// node takes writes. It is killed when the test ends.
func StartCluster(t TB) *Cluster {
	t.Helper()
	c, err := launchCluster(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		n.t = t
	}
	t.Cleanup(c.kill)
	return c
}

// URL returns the addresses of all nodes as one redis+cluster:// URL.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.addrs(), ",") }

// Client returns a client of the cluster, closed when t ends.
func (c *Cluster) Client(t TB) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (c *Cluster) addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

func (c *Cluster) kill() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

func launchCluster(dir string) (*Cluster, error) {
	c := &Cluster{}
	for i := range clusterSize {
		nodeDir := filepath.Join(dir, strconv.Itoa(i))
		err := os.Mkdir(nodeDir, 0o755)
		var n *Server
		if err == nil {
			n, err = launch(nodeDir, true, nil)
		}
		if err != nil {
			c.kill()
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	if err := c.join(); err != nil {
		c.kill()
		return nil, fmt.Errorf("joining cluster: %w", err)
	}
	return c, nil
}

// join gives every node its slots, introduces the nodes to each other and waits
// until all of them see a whole cluster.
func (c *Cluster) join() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var clients []*redis.Client
	for _, n := range c.Nodes {
		client := redis.NewClient(&redis.Options{Addr: n.Addr()})
		defer client.Close()
		clients = append(clients, client)
	}
	for i, client := range clients {
		first, last := slotRange(i)
		// Distinct epochs from the start spare the nodes a collision round.
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
	}
	for _, client := range clients {
		for _, n := range c.Nodes {
			if client.Options().Addr == n.Addr() {
				continue
			}
			if err := client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", n.port, n.bus).Err(); err != nil {
				return err
			}
		}
	}
	for i, client := range clients {
		if err := waitNode(ctx, client, i); err != nil {
			return fmt.Errorf("waiting for node %d: %w", i, err)
		}
	}
	return nil
}

func waitNode(ctx context.Context, client *redis.Client, i int) error {
	for {
		err := probeNode(ctx, client, i)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(4 * pollInterval):
		}
	}
}

// probeNode checks that node i knows all slots and accepts a write to its own.
func probeNode(ctx context.Context, client *redis.Client, i int) error {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	lines := strings.Fields(info)
	for _, want := range []string{
		"cluster_state:ok",
		fmt.Sprint("cluster_slots_ok:", clusterSlots),
		fmt.Sprint("cluster_known_nodes:", clusterSize),
	} {
		if !slices.Contains(lines, want) {
			return fmt.Errorf("no %s in CLUSTER INFO:\n%s", want, info)
		}
	}
	key, err := keyOf(ctx, client, i)
	if err != nil {
		return err
	}
	if err := client.Set(ctx, key, "1", 0).Err(); err != nil {
		return err
	}
	return client.Del(ctx, key).Err()
}

// keyOf finds a key whose slot node i serves.
func keyOf(ctx context.Context, client *redis.Client, i int) (string, error) {
	first, last := slotRange(i)
	for n := range 1000 {
		key := fmt.Sprint("probe", n)
		slot, err := client.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return "", err
		}
		if int(slot) >= first && int(slot) <= last {
			return key, nil
		}
	}
	return "", errors.New("no key found in slot range")
}

func slotRange(i int) (first, last int) {
	return i * clusterSlots / clusterSize, (i+1)*clusterSlots/clusterSize - 1
}
