package redisstore_test

import (
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// A job is found by the names from another one down, and the newest tree as @latest.
func TestPoint12Paths(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		_, err := c.Find(e.Context(), client.Latest)
		e.fails(err, job.ErrNotFound)
		plan := planned{{Type: "g", Graph: true}, {Type: "h", Name: "pay", Graph: true}, {Type: "T", Name: "t38", Parent: 1}, {Type: "T", Name: "a/b"}}
		h, err := c.Start(e.Context(), plan, job.Alias("shop"))
		e.Check(err)
		e.Check(h.AddAlias(e.Context(), "team/shop"))
		for name, want := range map[string]job.ID{
			"shop/pay": h.ID().Nth(1), "shop/pay/t38": h.ID().Nth(2), string(h.ID()) + "/pay": h.ID().Nth(1),
			string(h.ID().Nth(1)) + "/t38": h.ID().Nth(2), "shop/a/b": h.ID().Nth(3), "team/shop": h.ID(), "team/shop/pay/t38": h.ID().Nth(2), client.Latest: h.ID(), client.Latest + "/pay/t38": h.ID().Nth(2),
		} {
			found, err := c.Find(e.Context(), name)
			e.Check(err)
			e.equal(name, found.ID(), want)
		}
		for _, bad := range []string{"shop/", "shop/payy", "shop/pay/t38/x", "/pay", "@lates"} {
			_, err := c.Find(e.Context(), bad)
			e.fails(err, job.ErrNotFound)
		}
	})
}
