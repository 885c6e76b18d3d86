package tracing_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/tracing"
	"github.com/weirworks/weir/telemetry/tracing/otlp"
	"github.com/weirworks/weir/worker"
)

// What a worker process of a test is told.
const (
	processEnv   = "WEIR_TRACED_PROCESS" // its types, with commas between them
	urlEnv       = "WEIR_TRACED_URL"
	namespaceEnv = "WEIR_TRACED_NAMESPACE"
	crashEnv     = "WEIR_TRACED_CRASH" // Ship kills the process
)

var types = map[string]worker.Worker{"Order": &Order{}, "Ship": &Ship{}, "Parcel": &Parcel{}, "Bill": &Bill{}}

// serve is a worker process, until its standard input ends.
func serve() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := serveTypes(ctx); err != nil {
		slog.Error("the process failed", "error", err)
		os.Exit(1)
	}
}

func serveTypes(ctx context.Context) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(urlEnv), Namespace: os.Getenv(namespaceEnv), Shards: 4})
	if err != nil {
		return err
	}
	defer store.Close()
	if !otlp.Wanted() {
		return errors.New("the environment does not ask for traces")
	}
	p, err := otlp.NewProvider(ctx, "test")
	if err != nil {
		return err
	}
	cfg := worker.Config{Store: store, Lease: 200 * time.Millisecond, Hooks: []worker.Hooks{tracing.New(store, p)}}
	for name := range strings.SplitSeq(os.Getenv(processEnv), ",") {
		cfg.Workers = append(cfg.Workers, types[name])
	}
	engine, err := worker.New(cfg)
	if err != nil {
		return err
	}
	err = engine.Run(ctx)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), otlp.FlushTimeout)
	defer cancel()
	return errors.Join(err, p.Shutdown(late))
}

// crash ends the process as a kill does, if it was told so.
func crash() {
	if os.Getenv(crashEnv) != "" {
		os.Exit(9)
	}
}

// process starts a worker process, and returns what ends it.
func process(t *testing.T, env ...string) (wait, end func()) {
	t.Helper()
	self, err := os.Executable()
	enginetest.Check(t, err)
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), t.Output()
	in, err := cmd.StdinPipe()
	enginetest.Check(t, err)
	enginetest.Check(t, cmd.Start())
	wait = sync.OnceFunc(func() { _ = cmd.Wait() }) // its spans say how it went
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		wait()
	})
	return wait, func() {
		_ = in.Close()
		wait()
	}
}

// collected keeps the spans that programs send by OTLP over HTTP.
type collected struct {
	mu    sync.Mutex
	spans []span
	err   error
}

func (c *collected) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var got collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
	for _, resource := range got.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, received(s))
			}
		}
	}
}

func received(s *wire.Span) span {
	one := span{
		trace: hex.EncodeToString(s.GetTraceId()), id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
		name: s.GetName(), text: s.GetName(),
	}
	if s.GetStatus().GetCode() == wire.Status_STATUS_CODE_ERROR {
		one.text += " failed: " + s.GetStatus().GetMessage()
	}
	for _, l := range s.GetLinks() {
		one.links = append(one.links, hex.EncodeToString(l.GetSpanId()))
	}
	return one
}

// TestProcesses: a trace goes on in other processes, and after one of them died in a run; all send it to one collector.
func TestProcesses(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx, url := e.Store, e.Ctx, e.URL
	c := &collected{}
	server := httptest.NewServer(c)
	defer server.Close()
	p, spans := recorder(t)
	h := placed(ctx, t, store, p)

	env := []string{
		urlEnv + "=" + url, namespaceEnv + "=" + store.Namespace(), "OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL,
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0",
	}
	_, end := process(t, append(env, processEnv+"=Order,Bill")...)
	died, _ := process(t, append(env, processEnv+"=Ship,Parcel", crashEnv+"=1")...)
	died()
	_, endOther := process(t, append(env, processEnv+"=Ship,Parcel")...)
	if _, err := h.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	enginetest.Check(t, settled(ctx, h))
	end()
	endOther()

	c.mu.Lock()
	defer c.mu.Unlock()
	all := append(stubs(spans.GetSpans()), c.spans...)
	oneTrace(t, all)
	if got := shape(all); got != wantShape || c.err != nil {
		t.Errorf("spans, error %v:\n%swant:\n%s", c.err, got, wantShape)
	}
}
