package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirworks/weir/bench/internal/lab"
)

// River and Temporal are peers with a module of their own, which is built when it is asked for.
const (
	River    = "river"
	Temporal = "temporal"
)

// build compiles the program of a module into the user's cache and returns its path.
func build(ctx context.Context, dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("%w; run the bench in its own folder", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "weir-bench", filepath.Base(dir))
	return path, lab.Build(ctx, dir, "go", "build", "-o", path, ".")
}

// RiverCases builds River's program and returns what it does. Each case has a PostgreSQL of
// its own; that one can be started is tried first.
func RiverCases(ctx context.Context, dir string) ([]lab.Case, error) {
	pg, err := startPostgres(ctx)
	if err == nil {
		err = pg.stop()
	}
	if err != nil {
		return nil, err
	}
	path, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	var cases []lab.Case
	for _, workload := range []string{"chain", "hops", "wake"} {
		cases = append(cases, lab.Case{Workload: workload, System: River, Run: func(ctx context.Context, l *lab.Lab) (figures []lab.Figure, err error) {
			pg, err := startPostgres(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, pg.stop()) }()
			p := &lab.Program{Command: []string{path}, Env: []string{"DATABASE_URL=" + pg.url}}
			return p.Case(workload, River, workload).Run(ctx, l)
		}})
	}
	return cases, nil
}

// TemporalCases builds the program of Temporal's test server and returns what it does.
func TemporalCases(ctx context.Context, dir string) ([]lab.Case, error) {
	path, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	p := &lab.Program{Command: []string{path}}
	return []lab.Case{p.Case("chain", Temporal, "chain"), p.Case("hops", Temporal, "hops")}, nil
}
