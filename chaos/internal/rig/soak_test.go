package rig

import (
	"math"
	"testing"
	"time"
)

// What grows is seen, whatever goes up and down beside it, and nothing is seen where nothing grows.
func TestGrowth(t *testing.T) {
	const seconds = 3600
	for name, perSecond := range map[string]float64{"flat": 0, "grows": 0.5, "falls": -0.25} {
		t.Run(name, func(t *testing.T) {
			var all []sample
			for at := 0.0; at < seconds; at += soakSample.Seconds() {
				kb := int64(40_000 + perSecond*at)
				if int(at)%int(soakPhase.Seconds()) < 120 { // after a peak
					kb += 80_000
				}
				all = append(all, sample{at: time.Duration(at * float64(time.Second)), redis: kb})
			}
			got := growth(all, func(one sample) float64 { return float64(one.redis) })
			if math.Abs(got-perSecond) > 0.02 {
				t.Errorf("growth is %.3f KB/s, want %.3f", got, perSecond)
			}
		})
	}
	if got := growth([]sample{{redis: 1}, {at: time.Minute, redis: 9}}, func(one sample) float64 { return float64(one.redis) }); got != 0 {
		t.Errorf("growth within one phase is %.3f, want 0: it is too short to say", got)
	}
}
