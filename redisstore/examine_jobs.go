package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	// longWait is how long the first job of a queue may be queued before that is worth
	// a remark, and oldLock how old a lock may be.
	longWait = time.Minute
	// limitWait is the same of the first job that waits for a limit: many are to be some minutes behind.
	limitWait = 10 * time.Minute
	// longTypes is how many types of a queue are named for that.
	longTypes = 5
	oldLock   = time.Hour
	// sampleOf is how many entries of each shard's `due` are looked at closely.
	sampleOf = 16
)

// layout looks at the namespace's meta. Without it there is nothing further to look at.
func (e *examiner) layout(ctx context.Context) error {
	meta, err := e.rdb.HGetAll(ctx, e.keys.meta()).Result()
	if err != nil {
		return err
	}
	e.hopeless = true
	n, numberErr := strconv.Atoi(meta["shards"])
	switch {
	case len(meta) == 0:
		e.warn("check --namespace; a namespace is made when it is first used", "namespace %s has never been used", e.keys.namespace)
	case meta["format"] != format && meta["format"] != formatHashes:
		e.problem("use a matching version of Weir, or another namespace", "namespace %s has layout %q, this program knows layout %s", e.keys.namespace, meta["format"], format)
	case numberErr != nil || n < 1 || n > maxShards:
		e.problem("restore "+e.keys.meta()+" from a backup: with another number jobs are not found", "namespace %s says it has %q shards", e.keys.namespace, meta["shards"])
	case e.keys.shards != 0 && e.keys.shards != n:
		e.problem("restart this program", "namespace %s has %d shards, and had %d when this program opened it", e.keys.namespace, n, e.keys.shards)
	default:
		e.hopeless = false
		if e.keys.shards == 0 { // the store was opened for this examination alone; others may use one that was open before
			e.keys.shards = n
		}
		if meta["format"] == format {
			e.ok("namespace %s has layout %s and %d shards", e.keys.namespace, format, n)
		} else {
			e.warn("stop all programs that use it, run weir migrate, and start them in this version", "namespace %s has layout %s and %d shards: with layout %s small trees take less memory and time", e.keys.namespace, formatHashes, n, format)
		}
	}
	return nil
}

// unversioned is what programs have for a version of Weir that say none: those that are built from a checkout, or from a directory by a
// replace directive.
var unversioned = map[string]bool{"": true, "(devel)": true, "v0.0.0": true, "unknown": true}

// alive looks at the engines.
func (e *examiner) alive(ctx context.Context) (err error) {
	if e.engines, err = e.Engines(ctx); err != nil {
		return err
	}
	if e.types, err = e.Types(ctx); err != nil {
		return err
	}
	if len(e.engines) == 0 {
		e.warn("start your program, or weir worker", "no engine lives: no job runs")
		return nil
	}
	versions := map[string]bool{}
	slots := 0
	for _, one := range e.engines {
		if known := !unversioned[one.Version]; known {
			versions[one.Version] = true
		}
		slots += one.Concurrency
	}
	if len(versions) > 1 {
		e.warn("bring all to the same version, unless you are just doing so", "engines have different versions of Weir: %s", few(slices.Sorted(maps.Keys(versions))))
	}
	e.ok("%s live, for %s at a time", counted(len(e.engines), "engine"), counted(slots, "run"))
	return nil
}

// sweeping looks whether one of the engines puts right what others left.
func (e *examiner) sweeping(ctx context.Context) error {
	if len(e.engines) == 0 {
		e.add(Skipped, "", "no engine lives")
		return nil
	}
	for range 5 { // between two leaders, for a moment there is none
		n, err := e.rdb.Exists(ctx, e.keys.sweeper()).Result()
		if err != nil {
			return err
		}
		if n == 1 {
			e.ok("an engine sweeps")
			return nil
		}
		if err := rest(ctx, time.Second); err != nil {
			return err
		}
	}
	e.problem("look at the logs of the engines for \"sweep\"", "engines live, and none of them sweeps: what a crash leaves behind is not put right, and timers are late")
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// overdue looks for what the sweeper should have looked at long ago.
func (e *examiner) overdue(ctx context.Context) error {
	late := strconv.FormatInt(e.now.Add(-Lag).UnixMilli(), 10)
	counts, heads := make([]*redis.IntCmd, e.keys.shards+1), make([]*redis.ZSliceCmd, e.keys.shards+1)
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range counts {
			counts[i] = p.ZCount(ctx, e.dueAt(i), "-inf", late)
			heads[i] = p.ZRangeByScoreWithScores(ctx, e.dueAt(i), &redis.ZRangeBy{Min: "-inf", Max: late, Count: shown})
		}
		return nil
	}); err != nil {
		return err
	}
	n, what := int64(0), []string{}
	for i := range counts {
		n += counts[i].Val()
		for _, z := range heads[i].Val() {
			age := e.now.Sub(time.UnixMilli(int64(z.Score))).Round(time.Second)
			what = append(what, fmt.Sprintf("%s, %s late", memberText(fmt.Sprint(z.Member), e.dueAt(i)), age))
		}
	}
	if n == 0 {
		e.ok("nothing is late")
		return nil
	}
	e.worse("look at the log of the engine that sweeps, and at these jobs with weir why", "%s past due, and nobody looks: %s", counted(n, "thing"), few(what))
	return nil
}

// memberText says what an entry of a due key is for.
func memberText(member, due string) string {
	what, rest, _ := strings.Cut(member, " ")
	switch {
	case member == relayMember:
		return "orders of " + outboxAt(due)
	case member == backgroundTasksMember:
		return "background tasks of " + backgroundTasksAt(due)
	case member == retainMember:
		return "what is past its retention in " + due
	case strings.HasPrefix(member, limitedMember):
		return "who waits for limits in queue " + rest
	case strings.HasPrefix(member, rateMember):
		return "limit " + strings.TrimPrefix(member, "!")
	case strings.HasPrefix(member, "!"):
		id, _, _ := strings.Cut(rest, " ")
		return map[string]string{"!joining": "adoption of", "!full": "full port of", "!unborn": "unfinished plan of"}[what] + " job " + id
	case strings.HasPrefix(member, "@"):
		return "timer of job " + member[1:]
	}
	return "job " + member
}

// orders looks for what one shard wants done in another.
func (e *examiner) orders(ctx context.Context) error {
	return e.left(ctx, relayMember, "orders between shards", func(p redis.Pipeliner, due string) *redis.IntCmd { return p.XLen(ctx, outboxAt(due)) })
}

// leftToDo looks for background tasks.
func (e *examiner) leftToDo(ctx context.Context) error {
	return e.left(ctx, backgroundTasksMember, "background tasks", func(p redis.Pipeliner, due string) *redis.IntCmd { return p.LLen(ctx, backgroundTasksAt(due)) })
}

// left looks for work that is left to do beside due keys, of which member of `due` reminds
// the sweeper. Work that is only late is what overdue tells of.
func (e *examiner) left(ctx context.Context, member, what string, count func(p redis.Pipeliner, due string) *redis.IntCmd) error {
	counts, reminders := make([]*redis.IntCmd, e.keys.shards+1), make([]*redis.FloatCmd, e.keys.shards+1)
	look := func(p redis.Pipeliner, i int) {
		counts[i], reminders[i] = count(p, e.dueAt(i)), p.ZScore(ctx, e.dueAt(i), member)
	}
	_, _ = e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i := range counts {
			look(p, i)
		}
		return nil
	})
	total, forgotten := int64(0), []string{}
	for i := range counts {
		if counts[i].Val() > 0 && isNil(reminders[i].Err()) {
			// It may have been done between the two questions: ask both at once.
			_, _ = e.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { look(p, i); return nil })
		}
		if err := counts[i].Err(); err != nil {
			return err
		}
		total += counts[i].Val()
		if counts[i].Val() > 0 && isNil(reminders[i].Err()) {
			forgotten = append(forgotten, fmt.Sprintf("redis-cli ZADD '%s' 0 '%s'", e.dueAt(i), member))
		}
	}
	switch {
	case len(forgotten) > 0:
		e.problem(strings.Join(forgotten, "; "), "%s are left to do in %s, and nothing reminds the sweeper of them", what, counted(len(forgotten), "shard"))
	case total > 0:
		e.ok("%d %s are on their way", total, what)
	default:
		e.ok("no %s are left to do", what)
	}
	return nil
}

// lines looks at the queues, and at what asynq could not deliver.
func (e *examiner) lines(ctx context.Context) (err error) {
	if e.queues, err = e.queuesOf(ctx, e.engines); err != nil {
		return err
	}
	for _, q := range e.queues {
		if q.Paused {
			e.warn("weir queue resume "+q.Name, "queue %s is paused, with %s queued", q.Name, counted(q.Pending, "job"))
		} else if q.Engines > 0 {
			e.longReady(&q)
		}
		if q.Retry > 0 {
			e.warn("look at the logs of the engines: they could not begin these runs, and asynq brings them again", "asynq tries %s of queue %s again", counted(q.Retry, "wake"), q.Name)
		}
		if q.Archived > 0 {
			e.warn(fmt.Sprintf("no job is lost, the sweeper brings a new wake; asynq task deleteall --queue=weir:%s:%s --state=archived", e.keys.namespace, q.Name),
				"asynq gave %s of queue %s up", counted(q.Archived, "wake"), q.Name)
		}
	}
	if !e.found() {
		e.ok("%s, none paused or stuck", counted(len(e.queues), "queue"))
	}
	return nil
}

// lacking is what helps ready jobs that no engine which lives can run.
const lacking = "start an engine that has this type and serves this queue; weir why JOB tells what else a job needs"

// longReady tells which types of a queue have had ready jobs for long, those with the oldest first.
func (e *examiner) longReady(q *QueueInfo) {
	ready := slices.DeleteFunc(slices.Clone(q.Ready), func(r ReadyType) bool { return r.Oldest <= longWait })
	slices.SortStableFunc(ready, func(a, b ReadyType) int { return cmp.Compare(b.Oldest, a.Oldest) })
	for _, r := range ready[:min(len(ready), longTypes)] {
		fix := "start more engines for it, or raise --concurrency, or of handlers --handler-processes"
		switch served := func(needs string) bool { return e.served(q.Name, needs) }; {
		case r.Type != "" && !slices.ContainsFunc(r.Needs, served):
			fix = lacking
		case q.Limit > 0 && q.Active >= q.Limit:
			fix = fmt.Sprintf("its limit of %d at once is reached: weir queue limit %s NUMBER changes it", q.Limit, q.Name)
		}
		e.warn(fix, "queue %s, type %s: the oldest of %s has been ready for %s", q.Name, cmp.Or(r.Type, "that no engine has"),
			counted(r.Jobs, "ready job"), r.Oldest.Round(time.Second))
	}
	if more := len(ready) - longTypes; more > 0 {
		e.warn("weir queues --types lists them", "queue %s: jobs of %s more have been ready for more than %s", q.Name, counted(more, "type"), longWait)
	}
}

// served tells whether an engine that lives runs jobs of a type in a queue, which may need more than the type.
func (e *examiner) served(queue, typ string) bool {
	return slices.ContainsFunc(e.engines, func(one store.EngineInfo) bool {
		return one.Takes(queue, typ)
	})
}

// outdated tells of a type of which engines have a newer version than the one that registered it last.
func (e *examiner) outdated(t *job.TypeInfo) {
	newest, is := 1, max(t.TypeVersion, 1)
	for _, one := range e.engines {
		if one.Takes(t.Queue, t.Type) {
			newest = max(newest, one.Versions[t.Type])
		}
	}
	if newest > is {
		e.warn(fmt.Sprintf("stop the engines with version %d, or restart one with version %d, which registers it again", is, newest),
			"type %s of queue %s: engines have version %d, but one with version %d has registered it last: jobs are created with its ports and arguments, and others refused",
			t.Type, t.Queue, newest, is)
	}
}

// unserved looks for types that were registered by engines that are gone.
func (e *examiner) unserved(context.Context) error {
	if len(e.engines) == 0 {
		e.add(Skipped, "", "no engine lives")
		return nil
	}
	gone, names := map[string][]string{}, map[string]bool{} // a type may be in several queues
	for _, t := range e.types {
		names[t.Type] = true
		if !e.served(t.Queue, t.Type) {
			gone[t.Queue] = append(gone[t.Queue], t.Type)
		}
		e.outdated(&t)
	}
	for _, queue := range slices.Sorted(maps.Keys(gone)) {
		advice, ready := "start an engine that has them", e.readyTypes(queue)
		if i := slices.IndexFunc(gone[queue], func(typ string) bool { return !ready[typ] }); i >= 0 {
			advice += fmt.Sprintf("; of one that is gone for good: weir types forget %s --queue %s", gone[queue][i], queue)
		}
		e.warn(advice, "no engine that lives has, for queue %s, %s", queue, few(gone[queue]))
	}
	if !e.found() {
		e.ok("%s registered, all served", counted(len(names), "type"))
	}
	return nil
}

// readyTypes are the types of which jobs are ready in a queue.
func (e *examiner) readyTypes(queue string) map[string]bool {
	types := map[string]bool{}
	for _, q := range e.queues {
		if q.Name != queue {
			continue
		}
		for _, ready := range q.Ready {
			types[ready.Type] = true
		}
	}
	return types
}

// limits looks for types of which engines that live declare other limits than each other, or than what is registered.
func (e *examiner) limits(ctx context.Context) error {
	waiting, err := e.limited(ctx)
	if err != nil {
		return err
	}
	declared := 0
	for _, t := range e.types {
		counts := t.Limit()
		said, who := map[job.TypeLimit]bool{}, []string{}
		for i := range e.engines {
			if one := &e.engines[i]; one.Declares(t.Queue, t.Type) {
				l := one.Limits[t.Type]
				said[l] = true
				who = append(who, fmt.Sprintf("%s in process %d on %s", limitText(l), one.PID, cmp.Or(one.Host, "?")))
			}
		}
		switch {
		case len(said) > 1:
			e.warn("run the same program everywhere; until then the limit of an engine that lives counts again when it is started anew",
				"engines differ in the limit of runs of type %s of queue %s: %s; %s counts, which was registered last", t.Type, t.Queue, few(who), limitText(counts))
		case len(said) == 1 && !said[counts]:
			e.warn("an engine that declares a limit puts it back within some seconds; else start one of these anew: it registers what its types declare",
				"%s counts for type %s of queue %s, as registered, but no engine that lives declares that: %s", limitText(counts), t.Type, t.Queue, few(who))
		}
		if counts != (job.TypeLimit{}) {
			declared++
		}
	}
	if !e.found() {
		e.ok("%s of types, as the engines that live declare them; %s for a place of a limit", counted(declared, "limit"), waitText(waiting))
	}
	return nil
}

// limited returns how many ready jobs wait for limits, and tells of queues whose jobs do for long.
func (e *examiner) limited(ctx context.Context) (waiting int, err error) {
	long := []string{}
	for i := range e.queues {
		q := &e.queues[i]
		if waiting += q.Limited; q.LimitedFor <= limitWait {
			continue
		}
		names, err := e.limitsOf(ctx, q.Name)
		if err != nil {
			return 0, err
		}
		long = append(long, fmt.Sprintf("%s in queue %s, the first for %s: for %s", waitText(q.Limited), q.Name, q.LimitedFor.Round(time.Minute), few(names)))
	}
	if len(long) > 0 {
		e.warn("weir limits lists who has a place, and who is next; raise the limit, or make fewer jobs", "ready jobs wait for a place of a limit: %s", few(long))
	}
	return waiting, nil
}

// limitsOf returns the limits that the first jobs of a queue wait for, of those that do for long.
func (e *examiner) limitsOf(ctx context.Context, queue string) ([]string, error) {
	till := strconv.FormatInt(e.now.Add(-limitWait).UnixMilli(), 10)
	heads := make([]*redis.StringSliceCmd, e.keys.shards)
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range heads {
			heads[i] = p.ZRangeByScore(ctx, e.keys.limited(i, queue), &redis.ZRangeBy{Min: "-inf", Max: till, Count: sampleOf})
		}
		return nil
	}); err != nil {
		return nil, err
	}
	jobs, err := e.fieldsOf(ctx, heads, "claim")
	names := map[string]bool{}
	for _, j := range jobs {
		if _, name, ok := strings.Cut(j.fields[0], " "); ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

// waitText says how many jobs wait.
func waitText(n int) string {
	if n == 1 {
		return "1 job waits"
	}
	return counted(n, "job") + " wait"
}

// limitText says how many runs go on at once, and how many begin within a time.
func limitText(l job.TypeLimit) string {
	var parts []string
	for _, one := range store.RunLimits("", l) {
		text := strconv.Itoa(one.Max)
		if one.Per > 0 {
			text += " within " + one.Per.String()
		}
		if one.By != "" {
			text += " for each " + one.By
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return "a limit of " + strings.Join(parts, " and ")
}

// sampled is a ready job.
type sampled struct {
	id          job.ID
	queue, kind string
}

// waiting looks, among the jobs that are due first, for those that nobody can run.
func (e *examiner) waiting(ctx context.Context) error {
	if err := e.draw(ctx); err != nil {
		return err
	}
	stranded := map[string][]job.ID{}
	for _, r := range e.sample {
		if !e.served(r.queue, r.kind) {
			needs := job.ParseNeeds(r.kind, "")
			pair := needs.Words() + " of queue " + r.queue
			stranded[pair] = append(stranded[pair], r.id)
		}
	}
	for _, pair := range slices.Sorted(maps.Keys(stranded)) {
		e.problem(lacking, "no engine lives that could run %s of type %s: %s", counted(len(stranded[pair]), "ready job"), pair, few(stranded[pair]))
	}
	if !e.found() {
		e.ok("looked at %s: there is an engine for all", counted(len(e.sample), "ready job"))
	}
	return nil
}

// draw takes the ready jobs among the first entries of each shard's `due`.
func (e *examiner) draw(ctx context.Context) error {
	heads := make([]*redis.StringSliceCmd, e.keys.shards)
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range heads {
			heads[i] = p.ZRange(ctx, e.dueAt(i), 0, sampleOf-1)
		}
		return nil
	}); err != nil {
		return err
	}
	jobs, err := e.fieldsOf(ctx, heads, "status", "queue", "type")
	for _, j := range jobs {
		if j.fields[0] == string(statemachine.Queued) {
			e.sample = append(e.sample, sampled{id: j.id, queue: j.fields[1], kind: j.fields[2]})
		}
	}
	return err
}

// throttled looks for jobs that have run too often and wait until a minute is over.
func (e *examiner) throttled(ctx context.Context) error {
	shards := make([]int, e.keys.shards)
	for i := range shards {
		shards[i] = i
	}
	all, err := e.throttledOf(ctx, e.now, shards)
	if err != nil {
		return err
	}
	loops := []string{}
	for _, t := range all {
		if t.HotLoop {
			loops = append(loops, fmt.Sprintf("%s of type %s", t.ID, t.Type))
		}
	}
	if len(loops) > 0 {
		e.warn("let their workers ask for a later run (WakeAfter) instead of another at once, or give them MaxRunsPerMinute: -1",
			"%s throttled until the minute is over, for they run again and again and read, write and spawn nothing: %s", counted(len(loops), "job"), few(loops))
		return nil
	}
	e.ok("no hot loop; %s throttled by MaxRunsPerMinute", counted(len(all), "job"))
	return nil
}

// oldLocks looks for locks that keep ready jobs from running for long. A deep look finds
// those of all jobs.
func (e *examiner) oldLocks(ctx context.Context) error {
	ids := make([]job.ID, len(e.sample))
	for i, r := range e.sample {
		ids[i] = r.id
	}
	locks, err := e.Locked(ctx, ids...)
	if err != nil {
		return err
	}
	e.locks(locks)
	if !e.found() {
		e.ok("no ready job that was looked at has been locked for more than an hour")
	}
	return nil
}

// locks adds findings of old locks.
func (e *examiner) locks(locks map[job.ID]job.LockInfo) {
	for _, id := range slices.Sorted(maps.Keys(locks)) {
		l := locks[id]
		if l.Since.IsZero() || e.now.Sub(l.Since) < oldLock {
			continue
		}
		e.warn("weir unlock "+string(id)+" --force, if whoever holds it is gone", "job %s has been locked for %s by %q, and will be for another %s",
			id, e.now.Sub(l.Since).Round(time.Minute), l.By, l.Until.Sub(e.now).Round(time.Second))
	}
}
