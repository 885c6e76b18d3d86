package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Program is a system whose cases run in a process of their own. The process is given one
// argument more, an order as JSON, and prints {"figures": […]} on its last line. It fails if
// its results are wrong.
type Program struct {
	Dir     string
	Command []string
	Env     []string // besides this process's
}

// Order is what a program is told.
type Order struct {
	Workload    string `json:"workload"`
	Redis       string `json:"redis"`
	Concurrency int    `json:"concurrency"`
	Size        Size   `json:"size"`
}

// Answer is what it prints.
type Answer struct {
	Figures []Figure `json:"figures"`
}

// Case is a workload of the program, in which it may be called by another name.
func (p *Program) Case(workload, system, name string) Case {
	return Case{Workload: workload, System: system, Run: func(ctx context.Context, l *Lab) ([]Figure, error) {
		return p.run(ctx, l, name)
	}}
}

func (p *Program) run(ctx context.Context, l *Lab, workload string) ([]Figure, error) {
	order, err := json.Marshal(Order{Workload: workload, Redis: l.Redis.Addr(), Concurrency: l.Concurrency, Size: l.Size})
	if err != nil {
		return nil, err
	}
	args := append(append([]string{}, p.Command...), string(order))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.Dir
	cmd.Env = append(cmd.Environ(), p.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, head(stderr.String()))
	}
	var answer Answer
	if err := json.Unmarshal([]byte(lastLine(stdout.String())), &answer); err != nil {
		return nil, fmt.Errorf("what %s printed: %w", args[0], err)
	}
	if len(answer.Figures) == 0 {
		return nil, fmt.Errorf("%s has no figures", args[0])
	}
	return answer.Figures, nil
}

// Obey is the main function of a program in Go: it does the work that its argument orders and
// returns the exit code.
func Obey(ctx context.Context, workloads map[string]func(context.Context, *Lab) ([]Figure, error)) int {
	figures, err := obey(ctx, workloads)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(Answer{Figures: figures})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func obey(ctx context.Context, workloads map[string]func(context.Context, *Lab) ([]Figure, error)) ([]Figure, error) {
	if len(os.Args) != 2 {
		return nil, errors.New("this program belongs to the benchmark: run that")
	}
	var o Order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		return nil, err
	}
	work := workloads[o.Workload]
	if work == nil {
		return nil, fmt.Errorf("no workload %q", o.Workload)
	}
	return work(ctx, &Lab{Concurrency: o.Concurrency, Size: o.Size})
}

// Build runs a command that a program needs before it can run, and says in an error what the
// command said.
func Build(ctx context.Context, dir string, command ...string) error {
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("there is no %s here", command[0])
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	return RunQuiet(cmd)
}

// RunQuiet runs a command whose output matters only if it fails.
func RunQuiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, head(string(out)))
	}
	return nil
}

// told is how much of what a command said is worth telling.
const told = 600

func head(text string) string {
	text = strings.TrimSpace(text)
	return text[:min(len(text), told)]
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}
