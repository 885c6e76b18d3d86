package redisstore_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// shops are two trees with aliases: each a graph of payments, of which one has many, and shipments.
func shops(e *env) (shop, eu job.ID) {
	e.Helper()
	plan := planned{{Type: "g", Graph: true}, {Type: "h", Name: "pay", Graph: true}, {Type: "T", Name: "ship"}, {Type: "T", Name: "a/b"}}
	for n := range 700 { // more than one answer of a scan has
		plan = append(plan, job.Node{Type: "T", Name: fmt.Sprintf("t%d", n), Parent: 1})
	}
	c := client.New(e.store)
	h, err := c.Start(e.Context(), plan, job.Alias("shop"))
	e.Check(err)
	o, err := c.Start(e.Context(), plan[:6], job.Alias("shop-eu"))
	e.Check(err)
	return h.ID(), o.ID()
}

// Jobs are found by patterns of paths and names, and by keys of their state, together with what else a filter says.
func TestPoint12FindJobs(t *testing.T) {
	each(t, func(e *env) {
		shop, eu := shops(e)
		e.Check(e.store.SetState(e.Context(), shop.Nth(4), map[string]json.RawMessage{"receipt": json.RawMessage("7"), "paid": json.RawMessage("1")}, nil))
		e.Check(e.store.SetState(e.Context(), eu.Nth(4), map[string]json.RawMessage{"receipt": json.RawMessage("8")}, nil))
		e.commit(delta(e.begin(shop.Nth(5)), statemachine.Fail))
		c := client.New(e.store)
		all := func(root job.ID, from, to int) (ids []job.ID) {
			for n := from; n <= to; n++ {
				ids = append(ids, root.Nth(n))
			}
			return ids
		}
		failed := []statemachine.Status{statemachine.Failed}
		for _, one := range []struct {
			filter job.Filter
			want   []job.ID
		}{
			{job.Filter{Path: "shop/pay/*"}, all(shop, 4, 703)},
			{job.Filter{Path: "shop/pay/t?"}, all(shop, 4, 13)},
			{job.Filter{Path: "shop/pay/t69[89]"}, all(shop, 702, 703)},
			{job.Filter{Path: string(shop) + "/*"}, all(shop, 1, 3)},
			{job.Filter{Path: client.Latest + "/*/t1"}, all(eu, 5, 5)},
			{job.Filter{Path: "shop/pay/t1"}, all(shop, 5, 5)},
			{job.Filter{Path: "shop/a/b"}, all(shop, 3, 3)},
			{job.Filter{Path: "shop*/pay/t1"}, append(all(shop, 5, 5), eu.Nth(5))},
			{job.Filter{Path: "shop*"}, []job.ID{shop, eu}},
			{job.Filter{Path: "shop-eu/**"}, all(eu, 0, 5)},
			{job.Filter{Path: "shop/**/t7"}, all(shop, 11, 11)},
			{job.Filter{Path: "shop/pay/*", Status: failed}, all(shop, 5, 5)},
			{job.Filter{Path: "none*/pay"}, nil},
			{job.Filter{Name: "t70?"}, nil},
			{job.Filter{Name: "t69?"}, all(shop, 694, 703)},
			{job.Filter{Name: "pay", Type: "h"}, []job.ID{shop.Nth(1), eu.Nth(1)}},
			{job.Filter{StateKeys: []string{"receipt"}, All: true}, []job.ID{shop.Nth(4), eu.Nth(4)}},
			{job.Filter{StateKeys: []string{"receipt", "paid"}, Name: "t*"}, all(shop, 4, 4)},
			{job.Filter{StateKeys: []string{"receipt"}}, nil},
		} {
			f, what := one.filter, fmt.Sprintf("%+v", one.filter)
			f.Order = job.Oldest
			e.equal(what, ids(e, c, f), one.want)
			n, err := c.Count(e.Context(), f)
			e.Check(err)
			e.equal("count of "+what, n, len(one.want))
			f.Order = job.Newest
			slices.Reverse(one.want)
			var pages []job.ID
			for more := true; more; more = f.After != "" {
				page, next, err := c.JobsPage(e.Context(), f, 3)
				e.Check(err)
				for _, i := range page {
					pages = append(pages, i.ID)
				}
				f.After = next
			}
			e.equal("pages of "+what, pages, one.want)
		}
	})
}

func ids(e *env, c *client.Client, f job.Filter) (ids []job.ID) {
	e.Helper()
	for i, err := range c.Jobs(e.Context(), f) {
		e.Check(err)
		ids = append(ids, i.ID)
	}
	return ids
}

// Patterns that no job could pass are refused, with what to write instead.
func TestPoint12BadPatterns(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		for _, f := range []job.Filter{
			{Path: "shop//pay"}, {Path: "shop/[a"}, {Name: "[a"}, {Path: "/shop"}, {Path: "a", Alias: "b"}, {Path: "**/x"},
		} {
			_, err := c.Count(e.Context(), f)
			e.fails(err, job.ErrName)
			_, _, err = c.JobsPage(e.Context(), f, 1)
			e.fails(err, job.ErrName)
		}
		_, _, err := c.JobsPage(e.Context(), job.Filter{}, 0)
		e.fails(err, job.ErrValue)
		shops(e)
		for _, path := range []string{"nobody/*", "shop/none/*"} {
			_, err = c.Count(e.Context(), job.Filter{Path: path})
			e.fails(err, job.ErrNotFound)
		}
	})
}

// One page looks at a bounded number of jobs, however few pass the filter: the next one goes on behind them.
func TestPoint12PagesAreBounded(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	c := client.New(e.store)
	for n := range 2 {
		plan := planned{{Type: "g", Graph: true}}
		for k := range 12_000 {
			plan = append(plan, job.Node{Type: "T", Name: fmt.Sprintf("k%d", k)})
		}
		plan[9000*(1-n)+1].Name = "needle"
		_, err := c.Start(e.Context(), plan)
		e.Check(err)
	}
	f, found, requests := job.Filter{Name: "needle"}, 0, 0
	for more := true; more; more = f.After != "" {
		page, next, err := c.JobsPage(e.Context(), f, 5)
		e.Check(err)
		found += len(page)
		if f.After = next; requests > 9 {
			t.Fatal("the pages do not end")
		}
		requests++
	}
	e.equal("found", found, 2)
	e.equal("requests", requests, 2)
}
