package redisstore

import (
	"fmt"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// hideLaunch encodes what a tree that a run starts holds.
func (c *secrets) hideLaunch(plain *store.Launch) (_ *store.Launch, err error) {
	l := *plain
	if l.Plan, err = c.hidePlan(l.Plan, l.ID, 0); err != nil {
		return nil, err
	}
	l.Writes, err = each(l.Writes, func(w store.Write) (_ store.Write, err error) {
		w.Items, err = c.hideMessages(w.Items)
		return w, err
	})
	return &l, err
}

// launchArgs encodes the trees that a run starts as rare() in delta.lua reads them: pairs of root and order.
func launchArgs(args []any, from job.ID, launches []*store.Launch) []any {
	args = append(args, 2*len(launches))
	for _, l := range launches {
		args = append(args, string(l.ID), launchOrder(l, from))
	}
	return args
}

// launchOrder is the order that creates a tree, as launch() in mail_apply.lua reads it. Its parts are joined by \31, which
// is in none of them: they are names, numbers and JSON, as store.PlanLaunch checks. from is the job that starts the tree, if one does.
func launchOrder(l *store.Launch, from job.ID) string {
	nodes := planArgs(l.Plan, l.ID, 0, "", l.By, l.Digest)
	var args []any
	if l.Plan.Unique != nil {
		args = append(args, "once", uniqueBy(l.Plan), string(from), tellField(l.Plan.TellEnd))
	}
	args = append(args, "launch", string(l.ID), len(nodes))
	for _, n := range nodes {
		args = append(args, n...)
	}
	args = append(args, len(l.Writes))
	for _, w := range l.Writes {
		args = itemArgs(append(args, w.Port), w.Items)
	}
	args = append(args, len(l.Closes))
	for _, name := range l.Closes {
		args = append(args, name)
	}
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte('\x1f')
		}
		if raw, ok := a.([]byte); ok {
			b.Write(raw)
		} else {
			fmt.Fprint(&b, a)
		}
	}
	return b.String()
}
