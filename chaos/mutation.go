package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirworks/weir/internal/mutation"

	"github.com/weirworks/weir/chaos/internal/rig"
)

// noticeIn is how soon a mutation must be noticed.
const noticeIn = 120 * time.Second

// errUnnoticed: the harness is blind to something, or sees what is not there.
var errUnnoticed = errors.New("the rig cannot be relied on")

// mutations runs this program again for each way in which Weir can be broken, which it must
// notice, and for none, on the same schedule.
func (o *options) mutations(ctx context.Context, stdout, stderr io.Writer) error {
	if !mutation.Enabled {
		return errors.New("it was built without mutation: use make chaos-mutation, or go build -tags failpoints,mutation")
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "broken\tresult\tseconds\twhat was seen")
	failed := 0
	for _, name := range slices.Concat([]mutation.Name{""}, mutation.All) {
		began := time.Now()
		red, seen := o.mutated(ctx, name, stderr)
		took := time.Since(began)
		if err := ctx.Err(); err != nil {
			return err
		}
		result := "green"
		if red {
			result = "RED"
		}
		if red == (name == "") || red && took > noticeIn {
			result += ", which is wrong"
			failed++
		}
		title := string(name)
		if title == "" {
			title = "(nothing)"
		}
		fmt.Fprintf(table, "%s\t%s\t%.0f\t%s\n", title, result, took.Seconds(), seen)
		fmt.Fprintf(stderr, "chaos: mutation %s: %s in %s: %s\n", title, result, took.Round(time.Second), seen)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d results are wrong", errUnnoticed, failed, len(mutation.All)+1)
	}
	return nil
}

// mutated runs the harness on a Weir that is broken in one way, and tells whether it noticed, and what.
func (o *options) mutated(ctx context.Context, name mutation.Name, stderr io.Writer) (red bool, seen string) {
	self, err := os.Executable()
	if err != nil {
		return false, err.Error()
	}
	mode := rig.Standard
	if name == mutation.NoGuard {
		mode = rig.Reshard
	}
	cmd := exec.CommandContext(ctx, self, "-mode", string(mode),
		"-seconds", strconv.Itoa(int(o.rig.Duration.Seconds())), "-seed", strconv.FormatUint(o.rig.Seed, 10),
		"-workers", strconv.Itoa(o.rig.Workers), "-patience", o.rig.Patience.String())
	cmd.Env = append(os.Environ(), "WEIR_MUTATION="+string(name))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	var report rig.Report
	if jsonErr := json.Unmarshal(out.Bytes(), &report); jsonErr != nil {
		fmt.Fprintf(stderr, "%s", said.Bytes())
		return false, fmt.Sprintf("the rig did not work: %v", errors.Join(err, jsonErr))
	}
	bad := report.Bad()
	if name != "" { // what follows from it, but is no proof
		delete(bad, "never_hit")
		delete(bad, "trouble")
	}
	texts := make([]string, 0, len(bad))
	for _, counter := range slices.Sorted(maps.Keys(bad)) {
		texts = append(texts, fmt.Sprintf("%s %d", counter, bad[counter]))
	}
	if len(texts) == 0 {
		return false, fmt.Sprintf("%d faults, %d runs", report.WorkerFaults, report.Runs)
	}
	if name == "" {
		fmt.Fprintf(stderr, "%s\n", strings.Join(report.Details, "\n"))
	}
	return true, strings.Join(texts, ", ")
}
