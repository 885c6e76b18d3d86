package redisstore_test

import (
	"regexp"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// popAll begins runs of ready jobs of type C, and returns these.
func (e *env) popAll(g job.ID, b store.Begin) (ids []job.ID, begun []*store.Snapshot) {
	e.Helper()
	begun, err := e.store.Pop(e.Context(), job.DefaultQueue, g.Shard(shards), -1, b, []string{"C"})
	e.Check(err)
	for _, s := range begun {
		ids = append(ids, s.Info.ID)
	}
	return ids, begun
}

func TestPopBeginsSeveral(t *testing.T) {
	each(t, func(e *env) {
		_, g := e.shoal(6)
		b := severally(4)
		ids, begun := e.popAll(g, b)
		e.equal("begun", ids, []job.ID{g.Nth(2), g.Nth(3), g.Nth(4), g.Nth(5)})
		tokens := map[string]bool{}
		for n, s := range begun {
			e.is(statemachine.Running, s.Info.ID)
			tokens[s.Token] = true
			e.equal("the first has the token", s.Token == b.Token, n == 0)
		}
		e.equal("tokens", len(tokens), 4)
		e.equal("more are ready", begun[0].Ready, 2)
		e.unchanged("the same call again", func() {
			_, second := e.popAll(g, b)
			e.equal("snapshots", second, begun)
		})
		e.dies(ids[0])
		again, _ := e.popAll(g, b)
		e.equal("those that go on", again, ids[1:])
		for _, s := range begun[1:] {
			e.commit(delta(s, statemachine.Complete))
		}
		rest := map[job.ID]bool{}
		for ids, _ = e.popAll(g, severally(9)); len(ids) > 0; ids, _ = e.popAll(g, severally(9)) {
			for _, id := range ids {
				rest[id] = true
			}
		}
		e.equal("the rest", rest, map[job.ID]bool{g.Nth(2): true, g.Nth(6): true, g.Nth(7): true})
	})
}

// As many as may begin in one call have tokens of their own, which say the same in any language that quotes.
func TestPopBeginsTheMost(t *testing.T) {
	each(t, func(e *env) {
		_, g := e.shoal(store.MostSeveral + 1)
		_, begun := e.popAll(g, severally(store.MostSeveral+1))
		tokens := map[string]bool{}
		for _, s := range begun {
			tokens[s.Token] = true
			if !plainToken.MatchString(s.Token) {
				e.Errorf("the token of %s is %q", s.Info.ID, s.Token)
			}
		}
		e.equal("tokens", len(tokens), store.MostSeveral)
	})
}

var plainToken = regexp.MustCompile(`^[0-9A-Za-z]+$`)

// What cannot be decoded is left to others, and says why, also if it is the first; those beside it begin.
func TestPopBeginsSeveralButAnOddOne(t *testing.T) {
	each(t, func(e *env) {
		for n, rest := range [][]int{{3, 4, 5}, {2, 4, 5}} {
			_, g := e.shoal(4)
			odd := g.Nth(2 + n)
			e.Check(e.Redis.HSet(e.Context(), e.key(odd), "labels", "damaged").Err())
			ids, _ := e.popAll(g, severally(9))
			var want []job.ID
			for _, k := range rest {
				want = append(want, g.Nth(k))
			}
			e.equal("begun", ids, want)
			status, err := e.Redis.HMGet(e.Context(), e.key(odd), "status", "reason").Result()
			e.Check(err)
			if status[0] == string(statemachine.Running) || status[1] == "" {
				e.Errorf("the job with damaged labels is %v", status)
			}
		}
	})
}
