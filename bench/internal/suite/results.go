package suite

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/weirworks/weir/bench/internal/lab"
)

// Results are what a suite measured.
type Results struct {
	Machine Machine            `json:"machine"`
	Results []Result           `json:"results"`
	Ratios  map[string]float64 `json:"ratios"`
	Absent  map[string]string  `json:"absent,omitempty"` // systems that could not run, and why
}

// Result is the median of a figure over the rounds.
type Result struct {
	Name   string  `json:"name"`
	System string  `json:"system"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`

	less    bool // less is better
	samples []float64
}

// add takes the figures of a trial.
func (r *Results) add(system string, figures []lab.Figure) {
	for _, f := range figures {
		i := slices.IndexFunc(r.Results, func(x Result) bool { return x.Name == f.Name && x.System == system })
		if i < 0 {
			i = len(r.Results)
			r.Results = append(r.Results, Result{Name: f.Name, System: system, Unit: f.Unit, less: f.Less})
		}
		r.Results[i].samples = append(r.Results[i].samples, f.Value)
	}
}

// finish makes medians of the samples, and ratios of the medians.
func (r *Results) finish() {
	for i := range r.Results {
		r.Results[i].Value = median(r.Results[i].samples)
	}
	r.Ratios = r.ratios()
}

// value looks a median up.
func (r *Results) value(name, system string) (float64, bool) {
	for _, x := range r.Results {
		if x.Name == name && x.System == system {
			return x.Value, true
		}
	}
	return 0, false
}

// Write puts the results into a file.
func (r *Results) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// round shows a figure with three digits that count, or all of a large one.
func round(v float64) string {
	switch {
	case v == math.Trunc(v), math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
