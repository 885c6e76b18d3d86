package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// rates hold principals back that ask too often.
type rates struct {
	perSecond int // 0: nobody is held back
	mu        sync.Mutex
	spent     map[string]time.Time // by principal: until when its share is used up
}

// maxRates is how many principals are remembered before those are forgotten that have their whole share again.
const maxRates = 10_000

// take uses up one request of a principal's share, or says how long it has to wait for one. A share not used is kept for a second.
func (r *rates) take(key string, now time.Time) (wait time.Duration) {
	if r.perSecond == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	until := r.spent[key]
	if until.Before(now) {
		until = now
	}
	until = until.Add(time.Second / time.Duration(r.perSecond))
	if over := until.Sub(now) - time.Second; over > 0 {
		return over
	}
	if len(r.spent) >= maxRates {
		for other, at := range r.spent {
			if at.Before(now) {
				delete(r.spent, other)
			}
		}
	}
	r.spent[key] = until
	return 0
}

// tooOften refuses a request of a principal that has to wait.
func tooOften(w http.ResponseWriter, wait time.Duration, perSecond int) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	writeProblem(w, rateProblem(wait, perSecond))
}

// rateProblem is what it is told.
func rateProblem(wait time.Duration, perSecond int) *Problem {
	return problem(Kind{"rate", http.StatusTooManyRequests, 1}, "more than %d requests a second: send it again after %s", perSecond, wait.Round(time.Millisecond))
}
