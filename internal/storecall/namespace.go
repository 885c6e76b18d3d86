package storecall

import (
	"context"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// What commands show besides.
var (
	Where = define("where", toRead, func(_ context.Context, s Store, _ By, _ none) (Place, error) {
		return Place{s.Namespace(), s.Where(), s.Shards()}, nil
	})
	Now    = define("now", toRead, func(ctx context.Context, s Store, _ By, _ none) (time.Time, error) { return s.Now(ctx) })
	Queues = define("queues", toRead, func(ctx context.Context, s Store, _ By, _ none) ([]redisstore.QueueInfo, error) {
		return s.Queues(ctx)
	})
	PauseQueue = define("pause-queue", toOperate, func(ctx context.Context, s Store, _ By, queue string) (bool, error) {
		if err := job.CheckName("queue", queue); err != nil {
			return false, err
		}
		return s.PauseQueue(ctx, queue)
	})
	ResumeQueue = define("resume-queue", toOperate, func(ctx context.Context, s Store, _ By, queue string) (bool, error) {
		if err := job.CheckName("queue", queue); err != nil {
			return false, err
		}
		return s.ResumeQueue(ctx, queue)
	})
	Limits = define("limits", toRead, func(ctx context.Context, s Store, _ By, _ none) ([]redisstore.LimitInfo, error) {
		return s.Limits(ctx)
	})
	Limit = define("limit", toRead, func(ctx context.Context, s Store, _ By, name string) (*redisstore.LimitInfo, error) {
		return s.Limit(ctx, name)
	})
	Engines = define("engines", toRead, func(ctx context.Context, s Store, _ By, _ none) ([]store.EngineInfo, error) {
		return s.Engines(ctx)
	})
	Throttled = define("throttled", toRead, func(ctx context.Context, s Store, _ By, trees []job.ID) ([]redisstore.Throttled, error) {
		return s.Throttled(ctx, trees...)
	})
	Stats = define("stats", toRead, func(ctx context.Context, s Store, _ By, _ none) (*redisstore.Stats, error) {
		return s.Stats(ctx)
	})
	AuditLog = define("audit-log", toAdmin, func(ctx context.Context, s Store, _ By, n int) ([]redisstore.AuditEntry, error) {
		return s.AuditLog(ctx, n)
	})
	Examine = define("examine", toOperate, func(ctx context.Context, s Store, _ By, deep bool) ([]redisstore.Finding, error) {
		return s.Examine(ctx, redisstore.Examination{Deep: deep})
	})
)
