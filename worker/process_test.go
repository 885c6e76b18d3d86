package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// The environment of a worker process: its name, which makes the test binary one, and
// where its jobs are.
const (
	processEnv   = "WEIR_TEST_PROCESS"
	urlEnv       = "WEIR_TEST_URL"
	namespaceEnv = "WEIR_TEST_NAMESPACE"
)

// processLease is the lease of runs in worker processes.
const processLease = time.Second

var (
	processName = os.Getenv(processEnv)
	released    enginetest.Gate // of Held
)

// processMain serves jobs until it is told to stop, or until the test is gone.
func processMain() {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			switch in.Text() {
			case "go":
				released.Open()
			case "poor":
				fmt.Println("poor:", descriptors(noDescriptors))
			case "rich":
				fmt.Println("rich:", descriptors(allDescriptors))
			case "stop":
				stop()
			}
		}
		os.Exit(1) // the test is gone
	}()
	if err := processServe(ctx); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println("stopped")
}

func processServe(ctx context.Context) error {
	s, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(urlEnv), Namespace: os.Getenv(namespaceEnv)})
	if err != nil {
		return err
	}
	workers := releasedAs(processName)
	if workers == nil {
		workers = append(everything(), &Held{})
	}
	e, err := worker.New(worker.Config{
		Store: s, Workers: workers, Concurrency: 4, Lease: processLease,
		Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return errors.Join(e.Run(ctx), s.Close())
}

// Held copies numbers and says which process did. In the processes At, by their letters,
// it does all that and then does not end until it is released or, with Heed, until its context does.
type Held struct {
	At   string
	Heed bool
	In   port.In[int]
	Out  port.Out[int]
	Who  port.Out[string]
}

// Run implements worker.Worker.
func (w *Held) Run(ctx context.Context, run *worker.Run) error {
	for v, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := w.Out.Write(v); err != nil {
			return err
		}
	}
	_, err := run.Spawn("child_of_"+processName, job.Single(&Count{To: 3}, ""))
	if errors.Is(err, job.ErrExists) {
		return nil // woken by the child
	}
	err = errors.Join(err, w.Who.Write(processName), run.State().Set("who", processName), run.Log(processName))
	if err != nil || !strings.Contains(w.At, processName) {
		return err
	}
	fmt.Println("holding")
	if w.Heed {
		<-ctx.Done()
		fmt.Println("cause:", context.Cause(ctx))
		return nil
	}
	return released.Pass(context.Background())
}

// process is a worker process.
type process struct {
	bench *bench
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	gone  chan struct{} // closed when it has ended

	mu  sync.Mutex
	out strings.Builder
}

// process starts a worker process and returns when it serves. It is killed at the end of
// the test.
func (b *bench) process(name string) *process {
	b.Helper()
	exe, err := os.Executable()
	b.Check(err)
	p := &process{bench: b, name: name, cmd: exec.Command(exe), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), processEnv+"="+name, urlEnv+"="+b.URL, namespaceEnv+"="+b.Namespace)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.in, err = p.cmd.StdinPipe() // a process ends when this does
	b.Check(err)
	b.Check(p.cmd.Start())
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // killed on purpose: the status says nothing
	}()
	b.Cleanup(p.kill)
	p.says("ready")
	return p
}

// Write takes what the process says.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// says waits until the process has said one of the texts.
func (p *process) says(texts ...string) {
	p.bench.Helper()
	for deadline := time.Now().Add(enginetest.Patience); ; time.Sleep(enginetest.PollInterval) {
		for _, text := range texts {
			if strings.Contains(p.said(), text) {
				return
			}
		}
		if time.Now().After(deadline) {
			p.bench.Fatalf("process %s does not say any of %q, but:\n%s", p.name, texts, p.said())
		}
	}
}

// tell gives the process an order.
func (p *process) tell(order string) {
	p.bench.Helper()
	_, err := io.WriteString(p.in, order+"\n")
	p.bench.Check(err)
}

// kill ends the process by SIGKILL, also when it is stopped or gone, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

func (p *process) pause()  { p.bench.Check(p.cmd.Process.Signal(syscall.SIGSTOP)) }
func (p *process) resume() { p.bench.Check(p.cmd.Process.Signal(syscall.SIGCONT)) }
