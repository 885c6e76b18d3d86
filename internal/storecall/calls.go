package storecall

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// The roles that calls ask for.
const (
	toRead    = redisstore.TokenRead
	toOperate = redisstore.TokenOperate
	toAdmin   = redisstore.TokenAdmin
)

// Requests and answers of several values.
type (
	// JobText is a job and a text: an alias, a name, who acts.
	JobText struct {
		Job  job.ID
		Text string
	}
	// JobKeys is a job and keys of its state.
	JobKeys struct {
		Job  job.ID
		Keys []string
	}
	// JobNumber is a job and how much of it.
	JobNumber struct {
		Job job.ID
		N   int
	}
	// Prefix is of which IDs, and of how many.
	Prefix struct {
		Text  string
		Limit int
	}
	// FilterPage is a filter and how many jobs of it.
	FilterPage struct {
		Filter job.Filter
		Limit  int
	}
	// JobsOnPage are jobs and behind which one the list goes on.
	JobsOnPage struct {
		Jobs []*job.Info
		Next job.ID
	}
	// TypeName is a type of a queue.
	TypeName struct{ Queue, Type string }
	// HandlerText is a handler to be stored; without text, to be deleted.
	HandlerText struct {
		Type string
		Text json.RawMessage
	}
	// HandlerList are handlers and their revision.
	HandlerList struct {
		Handlers []store.HandlerVersion
		Revision int64
	}
	// NewTree is a tree to be created.
	NewTree struct {
		Job  job.ID
		Plan *job.Plan
		By   string
	}
	// JobMerging is args that are merged into those of a job.
	JobMerging struct {
		Job     job.ID
		Merging store.Merging
	}
	// JobPorts are the ports that a job is to have.
	JobPorts struct {
		Job   job.ID
		Ports []port.Spec
	}
	// JobDefault is the default of a port.
	JobDefault struct {
		Job     job.ID
		Default store.Default
	}
	// Connection is between ports.
	Connection struct {
		From job.PortRef
		To   []job.PortRef
	}
	// Excerpt is of the messages of a port.
	Excerpt struct {
		From             job.PortRef
		Offset, N, Bytes int
	}
	// Items are messages of a port.
	Items struct {
		Items []json.RawMessage
		Head  int64
	}
	// Taking removes messages.
	Taking struct {
		Job   job.ID
		Take  store.Take
		Token string
	}
	// TreeFilter is a filter for one tree.
	TreeFilter struct {
		Tree   job.ID
		Filter job.Filter
	}
	// Settling puts dead letters right.
	Settling struct {
		From       job.PortRef
		Settlement store.Settlement
	}
	// Firing is an event for a job.
	Firing struct {
		Job   job.ID
		Event statemachine.Event
	}
	// Timing is when a job is to run.
	Timing struct {
		Job   job.ID
		At    time.Time
		Delay time.Duration
	}
	// Retrying is how a job is retried.
	Retrying struct {
		Job   job.ID
		Retry store.Retry
	}
	// GivingUp fails a job.
	GivingUp struct {
		Job    job.ID
		ByHand store.ByHand
	}
	// Ranking is a priority for jobs.
	Ranking struct {
		Jobs     []job.ID
		Priority int
	}
	// Patching changes a graph.
	Patching struct {
		Job   job.ID
		Patch *store.Patch
	}
	// NewState changes a job's state.
	NewState struct {
		Job   job.ID
		Set   map[string]json.RawMessage
		Unset []string
	}
	// Kinship is a parent and a child under a name.
	Kinship struct {
		Parent, Child job.ID
		Name          string
	}
	// Publication is messages for a channel.
	Publication struct {
		Channel string
		Items   []json.RawMessage
	}
	// Position is a place in a log.
	Position struct {
		Job   job.ID
		At    string
		Limit int
	}
	// Locking asks for a lock, or with a token for more time of one.
	Locking struct {
		Job       job.ID
		By, Token string
		TTL, Wait time.Duration
	}
	// Bindings bind texts to jobs.
	Bindings struct {
		Texts []string
		Jobs  []job.ID
	}
	// Bound are the jobs that are bound, and what was wrong with each.
	Bound struct {
		Jobs   []job.ID
		Errors []*Refusal
	}
	// Created tells which trees were created.
	Created struct {
		Created []bool
		Errors  []*Refusal
	}
	// QueueNumber is a number for a queue.
	QueueNumber struct {
		Queue string
		N     int
	}
	// Place is what a store says of itself.
	Place struct {
		Namespace, Where string
		Shards           int
	}
)

// Creator, Names and Bulk.
var (
	Create = define("create", toOperate, func(ctx context.Context, s Store, by By, in NewTree) (bool, error) {
		if err := checkPlan(in.Plan); err != nil {
			return false, err
		}
		return s.Create(ctx, in.Job, in.Plan, by.or(in.By))
	})
	MergeArgs = define("merge-args", toOperate, func(ctx context.Context, s Store, _ By, in JobMerging) (bool, error) {
		if in.Merging.TypeVersion < 0 || !json.Valid(in.Merging.Args) {
			return false, fmt.Errorf("%w: args that are not valid JSON, or a version below 0", job.ErrValue)
		}
		return s.MergeArgs(ctx, in.Job, in.Merging)
	})
	Reserve = define("reserve", toOperate, func(ctx context.Context, s Store, _ By, in JobNumber) (int, error) {
		if in.N < 1 || in.N > job.MaxNodes {
			return 0, fmt.Errorf("%w: %d numbers of a tree: use 1 to %d", job.ErrName, in.N, job.MaxNodes)
		}
		return s.Reserve(ctx, in.Job, in.N)
	})
	Claim = define("claim", toOperate, func(ctx context.Context, s Store, _ By, in JobText) (job.ID, error) {
		if err := job.CheckName("alias", in.Text); err != nil {
			return "", err
		}
		return s.Claim(ctx, in.Text, in.Job)
	})
	Unclaim = define("unclaim", toOperate, func(ctx context.Context, s Store, _ By, in JobText) (none, error) {
		return none{}, s.Unclaim(ctx, in.Text, in.Job)
	})
	Resolve = define("resolve", toRead, func(ctx context.Context, s Store, _ By, alias string) (job.ID, error) {
		return s.Resolve(ctx, alias)
	})
	Once = define("once", toOperate, func(ctx context.Context, s Store, _ By, in JobText) (job.ID, error) {
		if err := checkText("a key", in.Text); err != nil {
			return "", err
		}
		return s.Once(ctx, in.Text, in.Job)
	})
	Aliases = define("aliases", toRead, func(ctx context.Context, s Store, _ By, id job.ID) ([]string, error) {
		return s.Aliases(ctx, id)
	})
	Prefixed = define("prefixed", toRead, func(ctx context.Context, s Store, _ By, in Prefix) ([]job.ID, error) {
		return s.Prefixed(ctx, in.Text, min(in.Limit, most))
	})
	OnceMany = define("once-many", toOperate, func(ctx context.Context, s Store, _ By, in Bindings) (Bound, error) {
		if err := in.check(); err != nil {
			return Bound{}, err
		}
		errs := s.OnceMany(ctx, in.Texts, in.Jobs)
		return Bound{in.Jobs, refusals(errs)}, nil
	})
	ClaimMany = define("claim-many", toOperate, func(ctx context.Context, s Store, _ By, in Bindings) (Bound, error) {
		if err := in.check(); err != nil {
			return Bound{}, err
		}
		errs := s.ClaimMany(ctx, in.Texts, in.Jobs)
		return Bound{in.Jobs, refusals(errs)}, nil
	})
	CreateMany = define("create-many", toOperate, func(ctx context.Context, s Store, by By, all []store.Creation) (Created, error) {
		for i := range all {
			if err := checkPlan(all[i].Plan); err != nil {
				return Created{}, err
			}
			all[i].By = by.or(all[i].By)
		}
		created, errs := s.CreateMany(ctx, all)
		return Created{created, refusals(errs)}, nil
	})
	WriteMany = define("write-many", toOperate, func(ctx context.Context, s Store, by By, all []store.Posting) ([]*Refusal, error) {
		for i := range all {
			if err := checkWrite(by, all[i].Job, &all[i].Write); err != nil {
				return nil, err
			}
		}
		return refusals(s.WriteMany(ctx, all)), nil
	})
)

// Lister, Types, Inspector and History.
var (
	Jobs = stream("jobs", toRead, false, func(ctx context.Context, s Store, f job.Filter) iter.Seq2[*job.Info, error] {
		return filtered(&f, func() iter.Seq2[*job.Info, error] { return s.Jobs(ctx, f) })
	})
	JobsPage = define("jobs-page", toRead, func(ctx context.Context, s Store, _ By, in FilterPage) (JobsOnPage, error) {
		if err := in.Filter.Validate(); err != nil {
			return JobsOnPage{}, err
		}
		if in.Limit < 1 {
			return JobsOnPage{}, fmt.Errorf("%w: a page of %d jobs: use at least 1", job.ErrValue, in.Limit)
		}
		jobs, next, err := s.JobsPage(ctx, in.Filter, min(in.Limit, most))
		return JobsOnPage{jobs, next}, err
	})
	Count = define("count", toRead, func(ctx context.Context, s Store, _ By, f job.Filter) (int, error) {
		if err := f.Validate(); err != nil {
			return 0, err
		}
		return s.Count(ctx, f)
	})
	Details = define("details", toRead, func(ctx context.Context, s Store, _ By, ids []job.ID) ([]job.Details, error) {
		if err := checkJobs(ids); err != nil {
			return nil, err
		}
		return s.Details(ctx, ids)
	})
	Types = define("types", toRead, func(ctx context.Context, s Store, _ By, _ none) ([]job.TypeInfo, error) {
		return s.Types(ctx)
	})
	Type = define("type", toRead, func(ctx context.Context, s Store, _ By, in TypeName) (*job.TypeInfo, error) {
		return s.Type(ctx, in.Queue, in.Type)
	})
	ForgetType = define("forget-type", toOperate, func(ctx context.Context, s Store, _ By, in TypeName) (none, error) {
		return none{}, s.ForgetType(ctx, in.Queue, in.Type)
	})
	Info = define("info", toRead, func(ctx context.Context, s Store, _ By, id job.ID) (*job.Info, error) {
		return s.Info(ctx, id)
	})
	Tree = define("tree", toRead, func(ctx context.Context, s Store, _ By, id job.ID) ([]*job.Info, error) {
		return s.Tree(ctx, id)
	})
	State = define("state", toRead, func(ctx context.Context, s Store, _ By, in JobKeys) (map[string]json.RawMessage, error) {
		return s.State(ctx, in.Job, in.Keys...)
	})
	Turn = define("turn", toRead, func(ctx context.Context, s Store, _ By, id job.ID) (job.Turn, error) {
		return s.Turn(ctx, id)
	})
	Failures = define("failures", toRead, func(ctx context.Context, s Store, _ By, id job.ID) ([]job.Failure, error) {
		return s.Failures(ctx, id)
	})
	Logs = define("logs", toRead, func(ctx context.Context, s Store, _ By, in JobNumber) ([]job.LogEntry, error) {
		return s.Logs(ctx, in.Job, in.N)
	})
	Child = define("child", toRead, func(ctx context.Context, s Store, _ By, in JobText) (job.ID, error) {
		return s.Child(ctx, in.Job, in.Text)
	})
	Runs = define("runs", toRead, func(ctx context.Context, s Store, _ By, in JobNumber) ([]job.RunEntry, error) {
		return s.Runs(ctx, in.Job, in.N)
	})
	Log = define("log", toRead, func(ctx context.Context, s Store, _ By, in Position) ([]job.Entry, error) {
		return s.Log(ctx, in.Job, in.At, in.Limit)
	})
	LogBack = define("log-back", toRead, func(ctx context.Context, s Store, _ By, in Position) ([]job.Entry, error) {
		return s.LogBack(ctx, in.Job, in.At, in.Limit)
	})
	LogTrimmed = define("log-trimmed", toRead, func(ctx context.Context, s Store, _ By, id job.ID) (job.Trimmed, error) {
		return s.LogTrimmed(ctx, id)
	})
)

// Ports, PortSetter, Letters and Channels.
var (
	Write = define("write", toOperate, func(ctx context.Context, s Store, by By, in store.Posting) (none, error) {
		if err := checkWrite(by, in.Job, &in.Write); err != nil {
			return none{}, err
		}
		return none{}, s.Write(ctx, in.Job, in.Write)
	})
	Peek = define("peek", toRead, func(ctx context.Context, s Store, _ By, in Excerpt) (Items, error) {
		if err := checkPort(in.From); err != nil {
			return Items{}, err
		}
		if err := in.check(); err != nil {
			return Items{}, err
		}
		items, head, err := s.Peek(ctx, in.From.Job, in.From.Dir, in.From.Port, in.N)
		return Items{items, head}, err
	})
	Page = define("page", toRead, func(ctx context.Context, s Store, _ By, in Excerpt) (Items, error) {
		if err := checkPort(in.From); err != nil {
			return Items{}, err
		}
		if err := in.check(); err != nil {
			return Items{}, err
		}
		items, head, err := s.Page(ctx, in.From.Job, in.From.Dir, in.From.Port, in.Offset, in.N, min(in.Bytes, job.MaxPeek))
		return Items{items, head}, err
	})
	Take = define("take", toOperate, func(ctx context.Context, s Store, _ By, in Taking) (none, error) {
		if err := checkPort(job.PortRef{Job: in.Job, Dir: in.Take.Dir, Port: in.Take.Port}); err != nil {
			return none{}, err
		}
		return none{}, s.Take(ctx, in.Job, in.Take, in.Token)
	})
	ClosePort = define("close-port", toOperate, func(ctx context.Context, s Store, _ By, p job.PortRef) (none, error) {
		if err := checkPort(p); err != nil {
			return none{}, err
		}
		return none{}, s.ClosePort(ctx, p.Job, p.Dir, p.Port)
	})
	SetPorts = define("set-ports", toOperate, func(ctx context.Context, s Store, _ By, in JobPorts) (none, error) {
		if len(in.Ports) > most {
			return none{}, fmt.Errorf("%w: %d ports of one job, at most %d are allowed", job.ErrTooLarge, len(in.Ports), most)
		}
		for i := range in.Ports {
			if err := in.Ports[i].Validate(); err != nil {
				return none{}, asValue(err)
			}
		}
		return none{}, s.SetPorts(ctx, in.Job, in.Ports)
	})
	SetDefault = define("set-default", toOperate, func(ctx context.Context, s Store, _ By, in JobDefault) (none, error) {
		err := checkPort(job.PortRef{Job: in.Job, Dir: in.Default.Dir, Port: in.Default.Port})
		if err == nil && in.Default.Value != nil {
			err = checkMessage(in.Default.Value)
		}
		if err != nil {
			return none{}, err
		}
		return none{}, s.SetDefault(ctx, in.Job, in.Default)
	})
	Connect = define("connect", toOperate, func(ctx context.Context, s Store, _ By, in Connection) ([]json.RawMessage, error) {
		for _, p := range append([]job.PortRef{in.From}, in.To...) {
			if err := checkPort(p); err != nil {
				return nil, err
			}
		}
		return s.Connect(ctx, in.From.Job, in.From.Dir, in.From.Port, in.To)
	})
	Dead = stream("dead", toRead, false, func(ctx context.Context, s Store, in TreeFilter) iter.Seq2[*job.Info, error] {
		return filtered(&in.Filter, func() iter.Seq2[*job.Info, error] { return s.Dead(ctx, in.Tree, in.Filter) })
	})
	Settle = define("settle", toOperate, func(ctx context.Context, s Store, by By, in Settling) (int, error) {
		if err := in.check(by); err != nil {
			return -1, err
		}
		refused, err := s.Settle(ctx, in.From, in.Settlement)
		if refused >= 0 && err != nil {
			err = &RefusedLetter{refused, err}
		}
		return refused, err
	})
	Publish = define("publish", toOperate, func(ctx context.Context, s Store, by By, in Publication) (none, error) {
		err := port.CheckChannel(in.Channel)
		if err == nil {
			err = checkMessages(by, in.Items)
		}
		if err != nil {
			return none{}, err
		}
		return none{}, s.Publish(ctx, in.Channel, in.Items)
	})
	Listen = stream("listen", toRead, true, listen)
)

// Control, Locks, Family, Keeper and Limits.
var (
	Apply = define("apply", toOperate, func(ctx context.Context, s Store, _ By, in Firing) (none, error) {
		if !slices.Contains(asked, in.Event) {
			return none{}, fmt.Errorf("%w: event %.40q is none that anybody may ask for: use %s", job.ErrValue, in.Event, asked)
		}
		return none{}, s.Apply(ctx, in.Job, in.Event)
	})
	RunAt = define("run-at", toOperate, func(ctx context.Context, s Store, _ By, in Timing) (none, error) {
		if err := checkSpan("delay", in.Delay); err != nil {
			return none{}, err
		}
		return none{}, s.RunAt(ctx, in.Job, in.At, in.Delay)
	})
	Retry = define("retry", toOperate, func(ctx context.Context, s Store, by By, in Retrying) (none, error) {
		if err := checkRetry(&in.Retry); err != nil {
			return none{}, err
		}
		in.Retry.By = by.or(in.Retry.By)
		return none{}, s.Retry(ctx, in.Job, in.Retry)
	})
	Fail = define("fail", toOperate, func(ctx context.Context, s Store, by By, in GivingUp) (none, error) {
		if err := in.ByHand.Validate(); err != nil {
			return none{}, err
		}
		in.ByHand.By = by.or(in.ByHand.By)
		return none{}, s.Fail(ctx, in.Job, in.ByHand)
	})
	SetPriority = define("set-priority", toOperate, func(ctx context.Context, s Store, _ By, in Ranking) (none, error) {
		if err := firstOf(job.CheckPriority(in.Priority), checkJobs(in.Jobs)); err != nil {
			return none{}, err
		}
		return none{}, s.SetPriority(ctx, in.Jobs, in.Priority)
	})
	Patch = define("patch", toOperate, func(ctx context.Context, s Store, _ By, in Patching) (none, error) {
		if in.Patch == nil {
			return none{}, fmt.Errorf("%w: the patch is missing", job.ErrName)
		}
		if err := checkPatch(in.Patch); err != nil {
			return none{}, err
		}
		return none{}, s.Patch(ctx, in.Job, in.Patch)
	})
	SetState = define("set-state", toOperate, func(ctx context.Context, s Store, _ By, in NewState) (none, error) {
		for key, value := range in.Set {
			if err := firstOf(job.CheckStateKey(key), port.Check(value), job.CheckSize("state key "+key, len(value))); err != nil {
				return none{}, err
			}
		}
		return none{}, s.SetState(ctx, in.Job, in.Set, in.Unset)
	})
	SetSecret = define("set-secret", toOperate, func(ctx context.Context, s Store, _ By, in JobText) (none, error) {
		if err := job.CheckSecret(in.Text); err != nil {
			return none{}, err
		}
		return none{}, s.SetSecret(ctx, in.Job, in.Text)
	})
	Lock = define("lock", toOperate, func(ctx context.Context, s Store, by By, in Locking) (string, error) {
		if err := firstOf(checkSpan("wait", in.Wait), checkTTL(in.TTL)); err != nil {
			return "", err
		}
		lock, err := s.Lock(ctx, in.Job, by.or(in.By), in.TTL, in.Wait)
		if err != nil {
			return "", err
		}
		return lock.Token(), nil
	})
	RefreshLock = define("refresh-lock", toOperate, func(ctx context.Context, s Store, _ By, in Locking) (none, error) {
		if err := checkTTL(in.TTL); err != nil {
			return none{}, err
		}
		return none{}, s.RefreshLock(ctx, in.Job, in.Token, in.TTL)
	})
	Unlock = define("unlock", toOperate, func(ctx context.Context, s Store, _ By, in Locking) (none, error) {
		return none{}, s.Unlock(ctx, in.Job, in.Token)
	})
	BreakLock = define("break-lock", toOperate, func(ctx context.Context, s Store, _ By, id job.ID) (none, error) {
		return none{}, s.BreakLock(ctx, id)
	})
	Locked = define("locked", toRead, func(ctx context.Context, s Store, _ By, ids []job.ID) (map[job.ID]job.LockInfo, error) {
		if err := checkJobs(ids); err != nil {
			return nil, err
		}
		return s.Locked(ctx, ids...)
	})
	Children = define("children", toRead, func(ctx context.Context, s Store, _ By, id job.ID) (map[string]job.ID, error) {
		return s.Children(ctx, id)
	})
	Adopt = define("adopt", toOperate, func(ctx context.Context, s Store, _ By, in Kinship) (none, error) {
		if err := job.CheckName("job name", in.Name); err != nil {
			return none{}, err
		}
		return none{}, s.Adopt(ctx, in.Parent, in.Child, in.Name)
	})
	Disown = define("disown", toOperate, func(ctx context.Context, s Store, _ By, in Kinship) (none, error) {
		return none{}, s.Disown(ctx, in.Parent, in.Child)
	})
	Terminate = define("terminate", toOperate, func(ctx context.Context, s Store, _ By, id job.ID) (none, error) {
		return none{}, s.Terminate(ctx, id)
	})
	Ended = define("ended", toRead, func(ctx context.Context, s Store, _ By, id job.ID) (bool, error) {
		return s.Ended(ctx, id)
	})
	Delete = define("delete", toOperate, func(ctx context.Context, s Store, _ By, id job.ID) (none, error) {
		return none{}, s.Delete(ctx, id)
	})
	Retention = define("retention", toRead, func(ctx context.Context, s Store, _ By, _ none) (job.Retention, error) {
		return s.Retention(ctx)
	})
	SetRetention = define("set-retention", toOperate, func(ctx context.Context, s Store, _ By, r job.Retention) (none, error) {
		return none{}, client.New(s).SetRetention(ctx, r)
	})
	SetHandler = define("set-handler", toAdmin, func(ctx context.Context, s Store, _ By, in HandlerText) (int64, error) {
		return handler.SetText(ctx, s, in.Type, in.Text)
	})
	HandlerVersions = define("handler-versions", toRead, func(ctx context.Context, s Store, _ By, typ string) ([]store.HandlerVersion, error) {
		return s.HandlerVersions(ctx, typ)
	})
	Handlers = define("handlers", toRead, func(ctx context.Context, s Store, _ By, _ none) (out HandlerList, err error) {
		out.Handlers, out.Revision, err = s.Handlers(ctx)
		return out, err
	})
	QueueLimits = define("queue-limits", toRead, func(ctx context.Context, s Store, _ By, _ none) (map[string]int, error) {
		return s.QueueLimits(ctx)
	})
	SetQueueLimit = define("set-queue-limit", toOperate, func(ctx context.Context, s Store, _ By, in QueueNumber) (none, error) {
		return none{}, s.SetQueueLimit(ctx, in.Queue, in.N)
	})
)
