package httpstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

var _ storecall.Store = (*Store)(nil)

// Create implements store.Creator. If the server knows who asks, that counts and not by.
func (s *Store) Create(ctx context.Context, id job.ID, plan *job.Plan, by string) (bool, error) {
	return ask(ctx, s, storecall.Create, storecall.NewTree{Job: id, Plan: plan, By: by})
}

// Reserve implements store.Creator.
func (s *Store) Reserve(ctx context.Context, tree job.ID, n int) (int, error) {
	return ask(ctx, s, storecall.Reserve, storecall.JobNumber{Job: tree, N: n})
}

// Claim implements store.Names.
func (s *Store) Claim(ctx context.Context, alias string, id job.ID) (job.ID, error) {
	return ask(ctx, s, storecall.Claim, storecall.JobText{Job: id, Text: alias})
}

// Unclaim implements store.Names.
func (s *Store) Unclaim(ctx context.Context, alias string, id job.ID) error {
	_, err := ask(ctx, s, storecall.Unclaim, storecall.JobText{Job: id, Text: alias})
	return err
}

// Resolve implements store.Names.
func (s *Store) Resolve(ctx context.Context, alias string) (job.ID, error) {
	return ask(ctx, s, storecall.Resolve, alias)
}

// Once implements store.Names.
func (s *Store) Once(ctx context.Context, key string, id job.ID) (job.ID, error) {
	return ask(ctx, s, storecall.Once, storecall.JobText{Job: id, Text: key})
}

// Aliases implements store.Names.
func (s *Store) Aliases(ctx context.Context, id job.ID) ([]string, error) {
	return ask(ctx, s, storecall.Aliases, id)
}

// Prefixed implements store.Names.
func (s *Store) Prefixed(ctx context.Context, prefix string, limit int) ([]job.ID, error) {
	return ask(ctx, s, storecall.Prefixed, storecall.Prefix{Text: prefix, Limit: limit})
}

// OnceMany implements store.Bulk.
func (s *Store) OnceMany(ctx context.Context, keys []string, ids []job.ID) []error {
	return s.bind(ctx, storecall.OnceMany, keys, ids)
}

// ClaimMany implements store.Bulk.
func (s *Store) ClaimMany(ctx context.Context, aliases []string, ids []job.ID) []error {
	return s.bind(ctx, storecall.ClaimMany, aliases, ids)
}

func (s *Store) bind(ctx context.Context, call storecall.Method[storecall.Bindings, storecall.Bound], texts []string, ids []job.ID) []error {
	bound, err := ask(ctx, s, call, storecall.Bindings{Texts: texts, Jobs: ids})
	if err == nil && (len(bound.Jobs) != len(ids) || len(bound.Errors) != len(ids)) {
		err = s.miscounted(len(bound.Errors), len(ids))
	}
	if err != nil {
		return repeated(err, len(ids))
	}
	copy(ids, bound.Jobs)
	return storecall.Errors(bound.Errors)
}

// MergeArgs implements store.Creator.
func (s *Store) MergeArgs(ctx context.Context, id job.ID, m store.Merging) (bool, error) {
	return ask(ctx, s, storecall.MergeArgs, storecall.JobMerging{Job: id, Merging: m})
}

// CreateMany implements store.Bulk.
func (s *Store) CreateMany(ctx context.Context, all []store.Creation) (created []bool, errs []error) {
	out, err := ask(ctx, s, storecall.CreateMany, all)
	if err == nil && (len(out.Created) != len(all) || len(out.Errors) != len(all)) {
		err = s.miscounted(len(out.Errors), len(all))
	}
	if err != nil {
		return make([]bool, len(all)), repeated(err, len(all))
	}
	return out.Created, storecall.Errors(out.Errors)
}

// WriteMany implements store.Bulk.
func (s *Store) WriteMany(ctx context.Context, all []store.Posting) []error {
	out, err := ask(ctx, s, storecall.WriteMany, all)
	if err == nil && len(out) != len(all) {
		err = s.miscounted(len(out), len(all))
	}
	if err != nil {
		return repeated(err, len(all))
	}
	return storecall.Errors(out)
}

func (s *Store) miscounted(got, want int) error {
	return fmt.Errorf("%w: %s tells what became of %d of %d", job.ErrRefused, s.shown, got, want)
}

// repeated is an error of each of several.
func repeated(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Jobs implements store.Lister.
func (s *Store) Jobs(ctx context.Context, f job.Filter) iter.Seq2[*job.Info, error] {
	return follow(ctx, s, storecall.Jobs, f)
}

// JobsPage implements store.Lister, with up to 1,000 jobs.
func (s *Store) JobsPage(ctx context.Context, f job.Filter, limit int) ([]*job.Info, job.ID, error) {
	page, err := ask(ctx, s, storecall.JobsPage, storecall.FilterPage{Filter: f, Limit: limit})
	return page.Jobs, page.Next, err
}

// Count implements store.Lister.
func (s *Store) Count(ctx context.Context, f job.Filter) (int, error) {
	return ask(ctx, s, storecall.Count, f)
}

// Details implements store.Lister.
func (s *Store) Details(ctx context.Context, ids []job.ID) ([]job.Details, error) {
	return ask(ctx, s, storecall.Details, ids)
}

// Register implements store.Types: it refuses, as engines, which register types, run beside Redis. POST /v1/workers of the API registers those
// that programs in other languages run.
func (s *Store) Register(context.Context, []job.TypeInfo) error {
	return fmt.Errorf("%w: engines run beside Redis, and not through %s", job.ErrConfig, s.shown)
}

// Types implements store.Types.
func (s *Store) Types(ctx context.Context) ([]job.TypeInfo, error) {
	return ask(ctx, s, storecall.Types, struct{}{})
}

// Type implements store.Types.
func (s *Store) Type(ctx context.Context, queue, name string) (*job.TypeInfo, error) {
	return ask(ctx, s, storecall.Type, storecall.TypeName{Queue: queue, Type: name})
}

// Info implements store.Inspector.
func (s *Store) Info(ctx context.Context, id job.ID) (*job.Info, error) {
	return ask(ctx, s, storecall.Info, id)
}

// Tree implements store.Inspector.
func (s *Store) Tree(ctx context.Context, id job.ID) ([]*job.Info, error) {
	return ask(ctx, s, storecall.Tree, id)
}

// State implements store.Inspector.
func (s *Store) State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error) {
	return ask(ctx, s, storecall.State, storecall.JobKeys{Job: id, Keys: keys})
}

// Keyed implements store.Sequences.
func (s *Store) Keyed(id job.ID, key string) job.ID { return id.InShardOf(key, max(s.place.Shards, 1)) }

// Turn implements store.Sequences.
func (s *Store) Turn(ctx context.Context, id job.ID) (job.Turn, error) {
	return ask(ctx, s, storecall.Turn, id)
}

// Failures implements store.Inspector.
func (s *Store) Failures(ctx context.Context, id job.ID) ([]job.Failure, error) {
	return ask(ctx, s, storecall.Failures, id)
}

// Logs implements store.Inspector.
func (s *Store) Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error) {
	return ask(ctx, s, storecall.Logs, storecall.JobNumber{Job: id, N: limit})
}

// Child implements store.Inspector.
func (s *Store) Child(ctx context.Context, parent job.ID, name string) (job.ID, error) {
	return ask(ctx, s, storecall.Child, storecall.JobText{Job: parent, Text: name})
}

// Runs implements store.History.
func (s *Store) Runs(ctx context.Context, id job.ID, limit int) ([]job.RunEntry, error) {
	return ask(ctx, s, storecall.Runs, storecall.JobNumber{Job: id, N: limit})
}

// Log implements store.History.
func (s *Store) Log(ctx context.Context, id job.ID, after string, limit int) ([]job.Entry, error) {
	return ask(ctx, s, storecall.Log, storecall.Position{Job: id, At: after, Limit: limit})
}

// LogBack implements store.History.
func (s *Store) LogBack(ctx context.Context, id job.ID, before string, limit int) ([]job.Entry, error) {
	return ask(ctx, s, storecall.LogBack, storecall.Position{Job: id, At: before, Limit: limit})
}

// LogTrimmed implements store.History.
func (s *Store) LogTrimmed(ctx context.Context, id job.ID) (job.Trimmed, error) {
	return ask(ctx, s, storecall.LogTrimmed, id)
}

// Write implements store.Ports. If the server knows who asks, that is who the messages are from.
func (s *Store) Write(ctx context.Context, id job.ID, w store.Write) error {
	_, err := ask(ctx, s, storecall.Write, store.Posting{Job: id, Write: w})
	return err
}

// Peek implements store.Ports.
func (s *Store) Peek(ctx context.Context, id job.ID, dir port.Dir, name string, n int) ([]json.RawMessage, int64, error) {
	out, err := ask(ctx, s, storecall.Peek, storecall.Excerpt{From: job.PortRef{Job: id, Dir: dir, Port: name}, N: n})
	return out.Items, out.Head, err
}

// Page implements store.Letters.
func (s *Store) Page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) ([]json.RawMessage, int64, error) {
	out, err := ask(ctx, s, storecall.Page, storecall.Excerpt{From: job.PortRef{Job: id, Dir: dir, Port: name}, Offset: offset, N: n, Bytes: bytes})
	return out.Items, out.Head, err
}

// Take implements store.Ports.
func (s *Store) Take(ctx context.Context, id job.ID, t store.Take, token string) error {
	_, err := ask(ctx, s, storecall.Take, storecall.Taking{Job: id, Take: t, Token: token})
	return err
}

// ClosePort implements store.Ports.
func (s *Store) ClosePort(ctx context.Context, id job.ID, dir port.Dir, name string) error {
	_, err := ask(ctx, s, storecall.ClosePort, job.PortRef{Job: id, Dir: dir, Port: name})
	return err
}

// SetPorts implements store.PortSetter.
func (s *Store) SetPorts(ctx context.Context, id job.ID, ports []port.Spec) error {
	_, err := ask(ctx, s, storecall.SetPorts, storecall.JobPorts{Job: id, Ports: ports})
	return err
}

// SetDefault implements store.PortSetter.
func (s *Store) SetDefault(ctx context.Context, id job.ID, d store.Default) error {
	_, err := ask(ctx, s, storecall.SetDefault, storecall.JobDefault{Job: id, Default: d})
	return err
}

// Connect implements store.PortSetter.
func (s *Store) Connect(ctx context.Context, id job.ID, dir port.Dir, name string, to []job.PortRef) ([]json.RawMessage, error) {
	return ask(ctx, s, storecall.Connect, storecall.Connection{From: job.PortRef{Job: id, Dir: dir, Port: name}, To: to})
}

// Dead implements store.Letters.
func (s *Store) Dead(ctx context.Context, tree job.ID, f job.Filter) iter.Seq2[*job.Info, error] {
	return follow(ctx, s, storecall.Dead, storecall.TreeFilter{Tree: tree, Filter: f})
}

// Settle implements store.Letters.
func (s *Store) Settle(ctx context.Context, from job.PortRef, t store.Settlement) (int, error) {
	refused, err := ask(ctx, s, storecall.Settle, storecall.Settling{From: from, Settlement: t})
	if err == nil {
		return refused, nil
	}
	return storecall.LetterOf(err), err
}

// Publish implements store.Channels. If the server knows who asks, that is who the messages are from.
func (s *Store) Publish(ctx context.Context, channel string, items []json.RawMessage) error {
	_, err := ask(ctx, s, storecall.Publish, storecall.Publication{Channel: channel, Items: items})
	return err
}

// Listen implements store.Channels.
func (s *Store) Listen(ctx context.Context, channel string, fn func(json.RawMessage)) error {
	for item, err := range follow(ctx, s, storecall.Listen, channel) {
		if err != nil && ctx.Err() == nil {
			return err
		}
		if item != nil && ctx.Err() == nil {
			fn(item)
		}
	}
	return nil
}

// Apply implements store.Control.
func (s *Store) Apply(ctx context.Context, id job.ID, event statemachine.Event) error {
	_, err := ask(ctx, s, storecall.Apply, storecall.Firing{Job: id, Event: event})
	return err
}

// RunAt implements store.Control.
func (s *Store) RunAt(ctx context.Context, id job.ID, at time.Time, delay time.Duration) error {
	_, err := ask(ctx, s, storecall.RunAt, storecall.Timing{Job: id, At: at, Delay: delay})
	return err
}

// Retry implements store.Attempts.
func (s *Store) Retry(ctx context.Context, id job.ID, r store.Retry) error {
	_, err := ask(ctx, s, storecall.Retry, storecall.Retrying{Job: id, Retry: r})
	return err
}

// Fail implements store.Attempts. If the server knows who asks, that counts and not f.By.
func (s *Store) Fail(ctx context.Context, id job.ID, f store.ByHand) error {
	_, err := ask(ctx, s, storecall.Fail, storecall.GivingUp{Job: id, ByHand: f})
	return err
}

// SetPriority implements store.Control.
func (s *Store) SetPriority(ctx context.Context, ids []job.ID, n int) error {
	_, err := ask(ctx, s, storecall.SetPriority, storecall.Ranking{Jobs: ids, Priority: n})
	return err
}

// Patch implements store.Control.
func (s *Store) Patch(ctx context.Context, root job.ID, p *store.Patch) error {
	_, err := ask(ctx, s, storecall.Patch, storecall.Patching{Job: root, Patch: p})
	return err
}

// SetState implements store.Control.
func (s *Store) SetState(ctx context.Context, id job.ID, set map[string]json.RawMessage, unset []string) error {
	_, err := ask(ctx, s, storecall.SetState, storecall.NewState{Job: id, Set: set, Unset: unset})
	return err
}

// SetSecret keeps a secret with a job, see redisstore.Store.SetSecret.
func (s *Store) SetSecret(ctx context.Context, id job.ID, secret string) error {
	_, err := ask(ctx, s, storecall.SetSecret, storecall.JobText{Job: id, Text: secret})
	return err
}

// lock is one that was taken through a server.
type lock struct {
	store *Store
	id    job.ID
	token string
}

// Lock implements store.Locks. If the server knows who asks, that counts and not by.
func (s *Store) Lock(ctx context.Context, id job.ID, by string, ttl, wait time.Duration) (job.Lock, error) {
	token, err := ask(ctx, s, storecall.Lock, storecall.Locking{Job: id, By: by, TTL: ttl, Wait: wait})
	if err != nil {
		return nil, err
	}
	return &lock{s, id, token}, nil
}

// Token implements job.Lock.
func (l *lock) Token() string { return l.token }

// Refresh implements job.Lock.
func (l *lock) Refresh(ctx context.Context, ttl time.Duration) error {
	return l.store.RefreshLock(ctx, l.id, l.token, ttl)
}

// Release implements job.Lock.
func (l *lock) Release(ctx context.Context) error {
	err := l.store.Unlock(ctx, l.id, l.token)
	if errors.Is(err, job.ErrStatus) || errors.Is(err, job.ErrLocked) {
		return fmt.Errorf("%w: the lock of job %s was lost", job.ErrLocked, l.id)
	}
	return err
}

// RefreshLock makes the lock with that token last another ttl from now.
func (s *Store) RefreshLock(ctx context.Context, id job.ID, token string, ttl time.Duration) error {
	_, err := ask(ctx, s, storecall.RefreshLock, storecall.Locking{Job: id, Token: token, TTL: ttl})
	return err
}

// Unlock implements store.Locks.
func (s *Store) Unlock(ctx context.Context, id job.ID, token string) error {
	_, err := ask(ctx, s, storecall.Unlock, storecall.Locking{Job: id, Token: token})
	return err
}

// BreakLock implements store.Locks.
func (s *Store) BreakLock(ctx context.Context, id job.ID) error {
	_, err := ask(ctx, s, storecall.BreakLock, id)
	return err
}

// Locked implements store.Locks.
func (s *Store) Locked(ctx context.Context, ids ...job.ID) (map[job.ID]job.LockInfo, error) {
	return ask(ctx, s, storecall.Locked, ids)
}

// Children implements store.Family.
func (s *Store) Children(ctx context.Context, id job.ID) (map[string]job.ID, error) {
	return ask(ctx, s, storecall.Children, id)
}

// Adopt implements store.Family.
func (s *Store) Adopt(ctx context.Context, parent, child job.ID, name string) error {
	_, err := ask(ctx, s, storecall.Adopt, storecall.Kinship{Parent: parent, Child: child, Name: name})
	return err
}

// Disown implements store.Family.
func (s *Store) Disown(ctx context.Context, parent, child job.ID) error {
	_, err := ask(ctx, s, storecall.Disown, storecall.Kinship{Parent: parent, Child: child})
	return err
}

// Terminate implements store.Family.
func (s *Store) Terminate(ctx context.Context, id job.ID) error {
	_, err := ask(ctx, s, storecall.Terminate, id)
	return err
}

// Ended implements store.Family.
func (s *Store) Ended(ctx context.Context, id job.ID) (bool, error) {
	return ask(ctx, s, storecall.Ended, id)
}

// Delete implements store.Family.
func (s *Store) Delete(ctx context.Context, id job.ID) error {
	_, err := ask(ctx, s, storecall.Delete, id)
	return err
}

// Retention implements store.RetentionStore.
func (s *Store) Retention(ctx context.Context) (job.Retention, error) {
	return ask(ctx, s, storecall.Retention, struct{}{})
}

// SetRetention implements store.RetentionStore.
func (s *Store) SetRetention(ctx context.Context, r job.Retention) error {
	_, err := ask(ctx, s, storecall.SetRetention, r)
	return err
}

// QueueLimits implements store.Limits.
func (s *Store) QueueLimits(ctx context.Context) (map[string]int, error) {
	return ask(ctx, s, storecall.QueueLimits, struct{}{})
}

// SetHandler implements store.Handlers.
func (s *Store) SetHandler(ctx context.Context, t job.TypeInfo, text json.RawMessage) (int64, error) {
	return ask(ctx, s, storecall.SetHandler, storecall.HandlerText{Type: t.Type, Text: text})
}

// HandlerVersions implements store.Handlers.
func (s *Store) HandlerVersions(ctx context.Context, typ string) ([]store.HandlerVersion, error) {
	return ask(ctx, s, storecall.HandlerVersions, typ)
}

// Handlers implements store.Handlers.
func (s *Store) Handlers(ctx context.Context) ([]store.HandlerVersion, int64, error) {
	list, err := ask(ctx, s, storecall.Handlers, struct{}{})
	return list.Handlers, list.Revision, err
}

// HandlersRevision implements store.Handlers.
func (s *Store) HandlersRevision(ctx context.Context) (int64, error) {
	_, revision, err := s.Handlers(ctx)
	return revision, err
}

// SetQueueLimit implements store.Limits.
func (s *Store) SetQueueLimit(ctx context.Context, queue string, n int) error {
	_, err := ask(ctx, s, storecall.SetQueueLimit, storecall.QueueNumber{Queue: queue, N: n})
	return err
}

// ForgetType takes a type that no engine has any more out of the catalogue.
func (s *Store) ForgetType(ctx context.Context, queue, name string) error {
	_, err := ask(ctx, s, storecall.ForgetType, storecall.TypeName{Queue: queue, Type: name})
	return err
}

// Now is the time by the clock of the server's Redis.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return ask(ctx, s, storecall.Now, struct{}{})
}

// Queues returns the queues that are known, as the method of a redisstore.Store does.
func (s *Store) Queues(ctx context.Context) ([]redisstore.QueueInfo, error) {
	return ask(ctx, s, storecall.Queues, struct{}{})
}

// PauseQueue lets no more runs of a queue begin.
func (s *Store) PauseQueue(ctx context.Context, queue string) (changed bool, err error) {
	return ask(ctx, s, storecall.PauseQueue, queue)
}

// ResumeQueue lets runs of a queue begin again.
func (s *Store) ResumeQueue(ctx context.Context, queue string) (changed bool, err error) {
	return ask(ctx, s, storecall.ResumeQueue, queue)
}

// Limits returns how limits of runs at once are used.
func (s *Store) Limits(ctx context.Context) ([]redisstore.LimitInfo, error) {
	return ask(ctx, s, storecall.Limits, struct{}{})
}

// Limit returns how one of these limits is used.
func (s *Store) Limit(ctx context.Context, name string) (*redisstore.LimitInfo, error) {
	return ask(ctx, s, storecall.Limit, name)
}

// Engines returns the engines that live.
func (s *Store) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	return ask(ctx, s, storecall.Engines, struct{}{})
}

// Throttled finds throttled jobs in the trees of some jobs.
func (s *Store) Throttled(ctx context.Context, trees ...job.ID) ([]redisstore.Throttled, error) {
	return ask(ctx, s, storecall.Throttled, trees)
}

// Stats counts.
func (s *Store) Stats(ctx context.Context) (*redisstore.Stats, error) {
	return ask(ctx, s, storecall.Stats, struct{}{})
}

// AuditLog returns the last acts over HTTP, the newest first.
func (s *Store) AuditLog(ctx context.Context, n int) ([]redisstore.AuditEntry, error) {
	return ask(ctx, s, storecall.AuditLog, n)
}

// Examine looks whether the server's Redis and the namespace are in order. Progress of x is not told of.
func (s *Store) Examine(ctx context.Context, x redisstore.Examination) ([]redisstore.Finding, error) {
	return ask(ctx, s, storecall.Examine, x.Deep)
}
