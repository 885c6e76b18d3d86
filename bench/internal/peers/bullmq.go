package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirworks/weir/bench/internal/lab"
)

// BullMQ is what BullMQ is called; its flows are a system of their own.
const BullMQ = "bullmq"

// BullMQCases installs BullMQ from the lock file in dir, if it is not there, and returns what
// it does.
func BullMQCases(ctx context.Context, dir string) ([]lab.Case, error) {
	if _, err := os.Stat(filepath.Join(dir, "package-lock.json")); err != nil {
		return nil, fmt.Errorf("%w; run the bench in its own folder", err)
	}
	if err := lab.Build(ctx, dir, "node", "--version"); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(dir, "node_modules", BullMQ))
	if errors.Is(err, os.ErrNotExist) {
		err = lab.Build(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	}
	if err != nil {
		return nil, err
	}
	p := &lab.Program{Dir: dir, Command: []string{"node", "bench.mjs"}}
	flow := BullMQ + " flow"
	return []lab.Case{
		p.Case("chain", BullMQ, "chain"),
		p.Case("chain", flow, "chain flow"),
		p.Case("hops", BullMQ, "hops"),
		p.Case("hops", flow, "hops flow"),
		p.Case("fanout", flow, "fanout"),
		p.Case("wake", BullMQ, "wake"),
		p.Case("idle", BullMQ, "idle"),
		p.Case("memory", BullMQ, "memory"),
	}, nil
}
