package ownredis

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// A redis-server that reads its data is waited for, however long that takes; one that refuses us is not.
func TestWaitWhileRedisLoads(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr())
	proxy.Answer("LOADING Redis is loading the dataset in memory")
	answers := make(chan error, 1)
	go func() { answers <- answering(t.Context(), proxy.Addr()) }()
	select {
	case err := <-answers:
		t.Fatalf("while it loads: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	proxy.Answer("")
	if err := <-answers; err != nil {
		t.Error(err)
	}
	proxy.Answer("LOADING Redis is loading the dataset in memory")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := answering(ctx, proxy.Addr()); err == nil || !strings.Contains(err.Error(), "LOADING") && ctx.Err() == nil {
		t.Errorf("interrupted: %v", err)
	}
}
