package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/weirworks/weir/chaos/internal/rig"
)

// soaks puts a steady load on Weir and prints what grew.
func (o *options) soaks(ctx context.Context, stdout, stderr io.Writer) error {
	report, err := rig.Soak(ctx, rig.SoakConfig{Duration: o.rig.Duration, Workers: o.rig.Workers, Progress: stderr})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(report)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, string(raw))
	if len(report.Problems) > 0 {
		return fmt.Errorf("%w: %q", errBad, report.Problems)
	}
	return nil
}
