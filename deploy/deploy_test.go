// Package deploy_test reads the files of this folder with the libraries of those who run them, and asks the weir command
// whether it takes the flags that they give it.
package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/coreos/go-systemd/v22/unit"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// program builds the weir command once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-o", path, "./cmd/weir")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// accepted fails the test unless weir knows the command and each of its flags.
func accepted(t *testing.T, args []string) {
	t.Helper()
	weir, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(weir, append(slices.Clone(args), "--help")...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("weir "+args[0])) {
		t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRefusedByTheCommand(t *testing.T) {
	weir, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(weir, "serve", "--no-such-flag", "--help").CombinedOutput(); err == nil {
		t.Errorf("an unknown flag is not noticed, so the other tests here see nothing: %s", out)
	}
}

func TestDockerfile(t *testing.T) {
	text, err := os.Open("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	parsed, err := parser.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	warnings := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) { t.Errorf("%s: %s", rule, message) }})
	stages, _, err := instructions.Parse(parsed.AST, warnings)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if !strings.Contains(last.BaseName, "distroless") || !strings.HasSuffix(last.BaseName, ":nonroot") {
		t.Errorf("what runs stands on %s", last.BaseName)
	}
	var args, health []string
	for _, c := range last.Commands {
		switch c := c.(type) {
		case *instructions.HealthCheckCommand:
			health = c.Health.Test
		case *instructions.EntrypointCommand:
			if c.PrependShell {
				t.Error("the entry point needs a shell")
			}
		case *instructions.CmdCommand:
			args = c.CmdLine
		case *instructions.UserCommand:
			t.Errorf("it runs as %s", c.User)
		}
	}
	if len(args) == 0 {
		t.Fatal("there is no command")
	}
	accepted(t, args)
	asks(t, "the image", health)
}

// asks fails the test unless a check of health is a command that weir knows, without a shell.
func asks(t *testing.T, name string, test []string) {
	t.Helper()
	if len(test) < 3 || test[0] != "CMD" || test[1] != "/usr/local/bin/weir" {
		t.Errorf("%s asks for its health with %q", name, test)
		return
	}
	accepted(t, test[2:])
}

func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithWorkingDirectory("."))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range project.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s listens on %q", name, p.HostIP)
			}
		}
		if s.Image != "weir" {
			continue
		}
		accepted(t, s.Command)
		asks(t, name, s.HealthCheck.Test)
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(project.Services) != 3 {
		t.Errorf("services are %v", project.ServiceNames())
	}
}

// rendered returns what the chart makes of values, each file by its name.
func rendered(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load("helm/weir")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "shop", Namespace: "prod"}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

func TestChart(t *testing.T) {
	for _, m := range lint.AllWithKubeVersion("helm/weir", map[string]any{}, "prod", nil).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
	files, err := rendered(t, map[string]any{"server": map[string]any{
		"host": "jobs.example.com", "ingress": map[string]any{"enabled": true, "className": "nginx", "tlsSecret": "jobs-tls"},
	}, "monitoring": map[string]any{"enabled": true}, "workers": []any{
		map[string]any{"queue": "default", "autoscale": map[string]any{"enabled": true, "min": 1, "max": 5, "jobsPerReplica": 50}},
		map[string]any{"queue": "mail", "replicas": 3, "image": "shop/mail:1", "command": []any{"/mail"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for doc := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(strings.TrimPrefix(doc, "---")) == "" {
				continue
			}
			kinds[checkObject(t, name, doc)]++
		}
	}
	if want := map[string]int{
		"Deployment": 3, "Service": 1, "Ingress": 1, "PodDisruptionBudget": 3, "ServiceMonitor": 1, "PodMonitor": 1, "ScaledObject": 1, "TriggerAuthentication": 1,
	}; fmt.Sprint(kinds) != fmt.Sprint(want) {
		t.Errorf("objects are %v, want %v", kinds, want)
	}
}

// checkObject reads an object of Kubernetes strictly, and returns its kind.
func checkObject(t *testing.T, name, doc string) string {
	t.Helper()
	var meta struct{ Kind string }
	if err := yaml.Unmarshal([]byte(doc), &meta); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, doc)
	}
	var err error
	switch meta.Kind {
	case "Deployment":
		var d appsv1.Deployment
		err = yaml.UnmarshalStrict([]byte(doc), &d)
		c := d.Spec.Template.Spec.Containers[0]
		if c.Command == nil {
			accepted(t, c.Args)
		}
		if scaled := strings.HasSuffix(d.Name, "-default"); scaled != (d.Spec.Replicas == nil) {
			t.Errorf("%s: who scales sets the replicas: %v", d.Name, d.Spec.Replicas)
		}
		if d.Spec.Template.Spec.SecurityContext.RunAsNonRoot == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s may do too much", d.Name)
		}
	case "Service":
		err = yaml.UnmarshalStrict([]byte(doc), &corev1.Service{})
	case "Ingress":
		var in networkingv1.Ingress
		err = yaml.UnmarshalStrict([]byte(doc), &in)
		if r := in.Spec.Rules; len(r) != 1 || r[0].Host != "jobs.example.com" || in.Spec.TLS[0].SecretName != "jobs-tls" {
			t.Errorf("the ingress leads %v", in.Spec)
		}
	case "PodDisruptionBudget":
		var b policyv1.PodDisruptionBudget
		err = yaml.UnmarshalStrict([]byte(doc), &b)
		if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 || len(b.Spec.Selector.MatchLabels) != 2 {
			t.Errorf("%s: %v", b.Name, b.Spec)
		}
	case "ServiceMonitor", "PodMonitor":
		if !strings.Contains(doc, "path: /metrics") {
			t.Errorf("%s looks elsewhere:\n%s", meta.Kind, doc)
		}
	case "ScaledObject":
		if !strings.Contains(doc, `#(queue=="default").pending`) {
			t.Errorf("what is scaled by:\n%s", doc)
		}
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, doc)
	}
	return meta.Kind
}

func TestChartRefuses(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"unknown key":   {"replicas": 3},
		"name of queue": {"workers": []any{map[string]any{"queue": "No Queue"}}},
		"no queue":      {"workers": []any{map[string]any{"replicas": 1}}},
		"no host":       {"server": map[string]any{"ingress": map[string]any{"enabled": true}}},
		"no secret":     {"redis": map[string]any{"existingSecret": ""}},
	} {
		if _, err := rendered(t, values); err == nil {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}

func TestUnits(t *testing.T) {
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units are %v: %v", units, err)
	}
	for _, path := range units {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		options, err := unit.Deserialize(file)
		_ = file.Close()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		began := false
		for _, o := range options {
			if o.Section == "Service" && o.Name == "ExecStart" {
				began = true
				args := strings.Fields(strings.ReplaceAll(o.Value, "%i", "default"))
				accepted(t, args[1:])
			}
		}
		if !began {
			t.Errorf("%s starts nothing", path)
		}
		verify(t, path)
	}
}

// verify asks systemd itself, where it is installed.
func verify(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Logf("%s: no systemd-analyze here: keys of the unit are not checked", path)
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	weir, err := program()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), strings.ReplaceAll(filepath.Base(path), "@", "@default"))
	if err := os.WriteFile(copied, bytes.ReplaceAll(text, []byte("/usr/local/bin/weir"), []byte(weir)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", copied).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
}
