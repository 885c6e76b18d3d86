package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// uniqueReply is what scripts say before the root that has the unique key of one that was to be created.
const uniqueReply = "unique "

// uniqueSeparator stands between the sequential key and the unique key of a tree that has both.
const uniqueSeparator = "\x1e"

// uniqueBy is by what a tree is unique, as unique.lua reads it; empty: by nothing.
func uniqueBy(plan *job.Plan) string {
	if plan.Unique == nil {
		return ""
	}
	name := plan.Unique.Key
	if plan.SequentialKey != "" {
		name = plan.SequentialKey + uniqueSeparator + name
	}
	ms := (plan.Unique.For + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(int64(ms), 10) + " " + name
}

// uniqueKey is the unique key in the name that a root's hash has of it.
func uniqueKey(name string) string { return name[strings.LastIndex(name, uniqueSeparator)+1:] }

// MergeArgs implements store.Creator.
func (s *Store) MergeArgs(ctx context.Context, id job.ID, m store.Merging) (merged bool, err error) {
	place, why := s.secrets.place(job.KindArgs, id, ""), "moved"
	for why == "moved" {
		stored, err := s.rdb.HGet(ctx, s.keys.job(id, ""), "args").Bytes()
		if err != nil && !isNil(err) {
			return false, s.explain(err)
		}
		before, err := s.secrets.show(place, stored)
		if err != nil {
			return false, err
		}
		after, err := store.MergePatch(slices.Clone(before), m.Args)
		if err == nil {
			err = job.CheckSize("args", len(after))
		}
		if err != nil {
			return false, fmt.Errorf("merging args into those of job %s: %w", id, err)
		}
		hidden, err := s.secrets.hide(place, after)
		if err != nil {
			return false, err
		}
		due := s.keys.dueOf(id)
		reply, err := s.run(ctx, scriptMerge, due, string(id), rand.Text(), m.Type, max(m.TypeVersion, 1), stored, hidden)
		if err != nil {
			return false, err
		}
		var d decoder
		l := d.list(reply)
		if why = d.str(d.at(l, 0)); d.err != nil {
			return false, d.err
		}
		if err := s.deliver(ctx, due, &d, d.at(l, 1)); err != nil {
			return false, err
		}
	}
	return why == "ok", nil
}
