package suite

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine is where the figures are from.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	Redis  string `json:"redis"`
	// Load is the load average when the suite began: what else the machine was doing.
	Load string `json:"load"`
}

// ThisMachine describes the machine that the suite runs on; what it cannot find out is empty.
func ThisMachine(ctx context.Context) Machine {
	m := Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	if out, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
		for _, word := range strings.Fields(string(out)) {
			if v, ok := strings.CutPrefix(word, "v="); ok {
				m.Redis = v
			}
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return m
}

// field returns what the first line of a file that begins with name says.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
