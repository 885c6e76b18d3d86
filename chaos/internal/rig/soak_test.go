package rig

import (
	"math"
	"testing"
	"time"
)

// What grows is seen, whatever goes up and down beside it, and nothing is seen where nothing grows.
func TestSlope(t *testing.T) {
	for name, perSecond := range map[string]float64{"flat": 0, "grows": 0.5, "falls": -0.25} {
		t.Run(name, func(t *testing.T) {
			var all []sample
			for at := range 3600 {
				wave := 5000 * math.Sin(2*math.Pi*float64(at)/60)
				all = append(all, sample{at: time.Duration(at) * time.Second, redis: int64(40_000 + perSecond*float64(at) + wave)})
			}
			got := slope(all, func(one sample) float64 { return float64(one.redis) })
			if math.Abs(got-perSecond) > 0.05 {
				t.Errorf("the slope is %.3f KB/s, want %.3f", got, perSecond)
			}
		})
	}
}
