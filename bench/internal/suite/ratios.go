package suite

import (
	"strings"

	"github.com/weirworks/weir/bench/internal/weir"
)

// ratios compares Weir's figures with those of the others by the same name: how many times
// better Weir is. Of what grows with a number it also compares each with the first.
func (r *Results) ratios() map[string]float64 {
	all := map[string]float64{}
	for _, x := range r.Results {
		if base, ok := r.value(x.Name, weir.System); ok && x.System != weir.System {
			put(all, key(x.Name, x.System), better(base, x.Value, x.less))
		}
		if first, ok := r.first(x); ok {
			put(all, key(x.Name, theFirst), better(x.Value, first, x.less))
		}
	}
	return all
}

// theFirst is what figures of a row of numbers are compared with.
const theFirst = "the first"

func key(name, than string) string {
	return name + "_vs_" + strings.ReplaceAll(than, " ", "_")
}

func put(all map[string]float64, key string, ratio float64) {
	if ratio > 0 {
		all[key] = ratio
	}
}

// better tells how many times better a is than b, where more is better or less is. It is 0
// where there is nothing to compare.
func better(a, b float64, less bool) float64 {
	if less {
		a, b = b, a
	}
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}

// first finds the first of the figures that differ from x in the number at the end of their
// names, as growth.jobs.1000 and growth.jobs.100000 do.
func (r *Results) first(x Result) (float64, bool) {
	stem := strings.TrimRight(x.Name, "0123456789")
	if stem == x.Name || !strings.HasSuffix(stem, ".") {
		return 0, false
	}
	for _, y := range r.Results {
		if y.System == x.System && strings.TrimRight(y.Name, "0123456789") == stem {
			return y.Value, y.Name != x.Name
		}
	}
	return 0, false
}
