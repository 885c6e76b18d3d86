package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

const (
	// scanBatch is how many keys one SCAN looks at. Between two there is a rest as long
	// as the first took, and at least scanRest: so Redis has at least half its time for
	// others.
	scanBatch = 100
	scanRest  = 2 * time.Millisecond
	// secondLook is how long what looks wrong has to become right: it may be about to be
	// created, adopted or deleted.
	secondLook = 2 * time.Second
	// maxSuspects bounds what is remembered for the second look.
	maxSuspects = 10_000
)

// suspect is something that looks wrong.
type suspect struct {
	kind suspicion
	id   job.ID
	key  string // of leftover
}

type suspicion int

// What can be wrong. An orphan's parent does not know it, or is gone; an unlisted job
// has no parent and is not in the index; an empty entry of the index has no job; a leftover
// is a key of a job without the job; of an undefined record the definition is gone, a damaged one says nothing.
const (
	orphan suspicion = iota
	unlisted
	empty
	leftover
	undefined
	damaged
	suspicions // how many there are
)

// deep is a look at all keys of a namespace.
type deep struct {
	*examiner
	suspects []suspect
	more     bool // than maxSuspects
	skipped  int  // because things are being removed
	jobs     int64
	locked   []job.ID
}

// orphans looks at all keys of the namespace.
func (e *examiner) orphans(ctx context.Context) error {
	d := &deep{examiner: e}
	var all int64
	for _, v := range e.all {
		n, err := v.rdb.DBSize(ctx).Result()
		if err != nil {
			return err
		}
		all += n
	}
	done := int64(0)
	for _, v := range e.all {
		err := d.scan(ctx, v.rdb, func(n int64) {
			done += n
			if e.x.Progress != nil {
				e.x.Progress(min(done, all), all)
			}
		})
		if err != nil {
			return err
		}
	}
	for shard := range e.keys.shards {
		if err := d.index(ctx, shard); err != nil {
			return err
		}
	}
	if len(d.suspects) > 0 {
		if err := rest(ctx, secondLook); err != nil {
			return err
		}
	}
	guilty, err := d.again(ctx)
	if err != nil {
		return err
	}
	locks, err := e.Locked(ctx, d.locked...)
	if err != nil {
		return err
	}
	e.locks(locks)
	d.tell(guilty)
	return nil
}

// scan looks at the namespace's keys of one server.
func (d *deep) scan(ctx context.Context, rdb *redis.Client, progress func(int64)) error {
	for cursor := uint64(0); ; {
		asked := time.Now()
		keys, next, err := rdb.Scan(ctx, cursor, d.keys.prefix()+"*", scanBatch).Result()
		if err != nil {
			return err
		}
		found, err := d.suspicious(ctx, d.ofJobs(keys))
		if err != nil {
			return err
		}
		d.suspect(found)
		found, jobs, err := d.records(ctx, d.recordsAmong(keys))
		if err != nil {
			return err
		}
		d.suspect(found)
		d.jobs += jobs
		grown, err := d.growing(ctx, outputsAmong(keys))
		if err != nil {
			return err
		}
		d.unread = append(d.unread, grown...)
		progress(scanBatch)
		if cursor = next; cursor == 0 {
			return nil
		}
		if err := rest(ctx, max(time.Since(asked), scanRest)); err != nil {
			return err
		}
	}
}

func (d *deep) suspect(found []suspect) {
	room := maxSuspects - len(d.suspects)
	d.more = d.more || len(found) > room
	d.suspects = append(d.suspects, found[:min(len(found), room)]...)
}

// ofJobs returns what is to be looked at of some keys: jobs, and keys that need one.
func (d *deep) ofJobs(keys []string) []suspect {
	var out []suspect
	for _, key := range keys {
		_, name, ok := strings.Cut(key, "}:j:")
		if !ok {
			continue
		}
		text, suffix, more := strings.Cut(name, ":")
		id, err := job.ParseID(text)
		switch {
		case err != nil, suffix == "scrap", suffix == "held": // these are there before or after the job
		case !more:
			d.jobs++
			out = append(out, suspect{kind: orphan, id: id})
		case suffix == strings.TrimPrefix(lockSuffix, ":"):
			d.locked = append(d.locked, id)
		default:
			out = append(out, suspect{kind: leftover, id: id, key: key})
		}
	}
	return out
}

// recordsAmong returns those of some keys that are records.
func (d *deep) recordsAmong(keys []string) []suspect {
	var out []suspect
	for _, key := range keys {
		if _, text, ok := strings.Cut(key, "}:r:"); ok {
			if id, err := job.ParseID(text); err == nil {
				out = append(out, suspect{kind: undefined, id: id, key: key})
			}
		}
	}
	return out
}

// records returns those of some records that look wrong, and how many jobs the others have.
func (d *deep) records(ctx context.Context, all []suspect) (found []suspect, jobs int64, err error) {
	ids := make([]job.ID, len(all))
	for i, s := range all {
		ids[i] = s.id
	}
	known, err := d.recorded(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	text, listed := make([]*redis.StringCmd, len(all)), make([]*redis.FloatCmd, len(all))
	_, _ = d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, id := range ids {
			text[i], listed[i] = p.Get(ctx, d.keys.record(id)), p.ZScore(ctx, d.keys.index(id.Shard(d.keys.shards)), string(id))
		}
		return nil
	})
	defined := make([]*redis.IntCmd, len(all)) // servers may know definitions that are gone, until they are restarted
	_, _ = d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			digest, _, _ := strings.Cut(text[i].Val(), " ")
			defined[i] = p.Exists(ctx, d.keys.definition(id, digest))
		}
		return nil
	})
	for i, s := range all {
		gone := isNil(text[i].Err()) // it has hashes now, or was removed
		if err := cmp.Or(text[i].Err(), defined[i].Err()); err != nil && !gone {
			return nil, 0, err
		}
		switch {
		case gone:
		case defined[i].Val() == 0:
			found = append(found, suspect{kind: undefined, id: s.id, key: s.key})
		case known[s.id].fields == nil:
			found = append(found, suspect{kind: damaged, id: s.id, key: s.key})
		case isNil(listed[i].Err()):
			found = append(found, suspect{kind: unlisted, id: s.id})
		default:
			jobs += 1 + int64(len(known[s.id].children))
		}
	}
	return found, jobs, nil
}

// index looks at the jobs that the index of a shard lists.
func (d *deep) index(ctx context.Context, shard int) error {
	for from := "-"; ; {
		ids, err := d.rdb.ZRangeByLex(ctx, d.keys.index(shard), &redis.ZRangeBy{Min: from, Max: "+", Count: scanBatch}).Result()
		if err != nil {
			return err
		}
		listed := make([]suspect, len(ids))
		for i, id := range ids {
			listed[i] = suspect{kind: empty, id: job.ID(id)}
		}
		found, err := d.suspicious(ctx, listed)
		if err != nil {
			return err
		}
		d.suspect(found)
		if len(ids) < scanBatch {
			return nil
		}
		from = "(" + ids[len(ids)-1]
		if err := rest(ctx, scanRest); err != nil {
			return err
		}
	}
}

// ofRecord tells whether the text of a record looked wrong.
func (s suspect) ofRecord() bool { return s.kind == undefined || s.kind == damaged }

// again looks once more at what looked wrong, and returns what still does.
func (d *deep) again(ctx context.Context) ([]suspect, error) {
	var guilty []suspect
	for from := 0; from < len(d.suspects); from += scanBatch {
		some := d.suspects[from:min(from+scanBatch, len(d.suspects))]
		part, err := d.suspicious(ctx, slices.DeleteFunc(slices.Clone(some), suspect.ofRecord))
		if err != nil {
			return nil, err
		}
		records, _, err := d.records(ctx, slices.DeleteFunc(slices.Clone(some), func(s suspect) bool { return !s.ofRecord() }))
		if err != nil {
			return nil, err
		}
		guilty = append(append(guilty, part...), records...)
		if err := rest(ctx, scanRest); err != nil {
			return nil, err
		}
	}
	return guilty, nil
}

// seen is what one pipeline asks of a job that is looked at.
type seen struct {
	fields            *redis.SliceCmd // status, parent, name, joining
	exists, uncreated *redis.IntCmd   // its hash; a list of jobs of which it will be the first
	backgroundTasks   *redis.IntCmd   // of its shard
	recorded          *redis.IntCmd   // its tree is one record
	listed            *redis.FloatCmd // in the index
}

// suspicious returns those of some jobs and keys that look wrong.
func (d *deep) suspicious(ctx context.Context, all []suspect) ([]suspect, error) {
	if len(all) == 0 {
		return nil, nil
	}
	asked := make([]seen, len(all))
	_, _ = d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, s := range all {
			key := d.keys.job(s.id, "")
			asked[i] = seen{
				fields: p.HMGet(ctx, key, "status", "parent", "name", "joining"),
				exists: p.Exists(ctx, key), uncreated: p.Exists(ctx, key+heldSuffix), backgroundTasks: p.LLen(ctx, backgroundTasksAt(d.keys.dueOf(s.id))),
				recorded: p.Exists(ctx, d.keys.record(s.id)),
				listed:   p.ZScore(ctx, d.keys.index(s.id.Shard(d.keys.shards)), string(s.id)),
			}
		}
		return nil
	})
	var found, children []suspect
	var parents []parenthood
	for i, s := range all {
		a := asked[i]
		if err := errors.Join(a.fields.Err(), a.exists.Err(), a.uncreated.Err(), a.backgroundTasks.Err(), a.recorded.Err()); err != nil {
			return nil, err
		}
		f := strs(a.fields.Val())
		status, parent, joining := f[0], f[1], f[3] == "1"
		switch {
		case a.backgroundTasks.Val() > 0: // it may be about to be removed
			d.skipped++
		case status == "" && a.recorded.Val() > 0 && (s.kind != unlisted || a.listed.Err() == nil):
		case status == "" && a.uncreated.Val() > 0: // its plan is being created
		case status == "" && s.kind == orphan && a.exists.Val() == 0: // deleted meanwhile
		case status == "" && s.kind == orphan:
			found = append(found, suspect{kind: leftover, id: s.id, key: d.keys.job(s.id, "")})
		case status == "":
			found = append(found, s)
		case s.kind == leftover || s.kind == empty || joining:
		case parent != "":
			children = append(children, s)
			parents = append(parents, parenthood{parent: job.ID(parent), name: f[2]})
		case isNil(a.listed.Err()):
			found = append(found, suspect{kind: unlisted, id: s.id})
		}
	}
	lost, err := d.lost(ctx, children, parents)
	return append(found, lost...), err
}

// parenthood is what a job says of its parent.
type parenthood struct {
	parent job.ID
	name   string
}

// lost returns the children whose parents do not know them.
func (d *deep) lost(ctx context.Context, children []suspect, parents []parenthood) ([]suspect, error) {
	if len(children) == 0 {
		return nil, nil
	}
	known, exists, uncreated := make([]*redis.StringCmd, len(children)), make([]*redis.BoolCmd, len(children)), make([]*redis.IntCmd, len(children))
	_, _ = d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, up := range parents {
			known[i] = p.HGet(ctx, d.keys.job(up.parent, childrenSuffix), up.name)
			exists[i] = p.HExists(ctx, d.keys.job(up.parent, ""), "status")
			uncreated[i] = p.Exists(ctx, d.keys.job(up.parent, heldSuffix)) // its first job comes last
		}
		return nil
	})
	var lost []suspect
	for i, c := range children {
		if err := errors.Join(exists[i].Err(), uncreated[i].Err()); err != nil {
			return nil, err
		}
		belongs := exists[i].Val() && known[i].Val() == string(c.id)
		if !belongs && uncreated[i].Val() == 0 {
			lost = append(lost, suspect{kind: orphan, id: c.id})
		}
	}
	return lost, nil
}

// tell makes findings of what is wrong.
func (d *deep) tell(guilty []suspect) {
	var what [suspicions][]string
	var first [suspicions]suspect
	for _, s := range guilty {
		if what[s.kind] == nil {
			first[s.kind] = s
		}
		name := string(s.id)
		if s.key != "" {
			name = s.key
		}
		what[s.kind] = append(what[s.kind], name)
	}
	for kind, finding := range [suspicions]struct{ text, fix string }{
		orphan:   {"jobs whose parent is gone, or has another child of that name", "weir terminate ID --recursive, then weir delete ID"},
		unlisted: {"root jobs that are not listed: weir jobs does not show them", "redis-cli ZADD 'INDEX' 0 ID"},
		empty:    {"entries of the list of root jobs whose jobs are gone", "redis-cli ZREM 'INDEX' ID"},
		leftover: {"keys of jobs that are gone", "redis-cli UNLINK 'KEY'"},
		undefined: {
			"trees that nobody can read, as the definition that they share with others of their kind is gone",
			"start another tree of that kind, which makes the definition anew for as long as it stays, or restore it from a backup; else redis-cli UNLINK 'KEY'",
		},
		damaged: {"trees that nobody can read, as somebody has damaged their record", "restore it from a backup; else redis-cli UNLINK 'KEY'"},
	} {
		if n := len(what[kind]); n > 0 {
			s := first[kind]
			fix := strings.NewReplacer("ID", string(s.id), "INDEX", d.keys.index(s.id.Shard(d.keys.shards)), "KEY", s.key).Replace(finding.fix)
			d.problem("for each, like the first: "+fix, "%d %s: %s", n, finding.text, few(what[kind]))
		}
	}
	if d.more {
		d.warn("put right what is found, and look again", "more than %d things look wrong: the others were not looked at twice", maxSuspects)
	}
	if d.skipped > 0 {
		d.add(Skipped, "", fmt.Sprintf("%d keys of shards where subtrees are being removed", d.skipped))
	}
	if len(guilty) == 0 && !d.more {
		d.ok("%s, each where its parent or the index says, and no key is left without its job", counted(d.jobs, "job"))
	}
}
