package api_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// lines serves Bedrock's commands as lines, and returns what sends one, on a connection of its own, and returns the first line of the answer.
func (s *service) lines() func(lines ...string) string {
	s.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	over := make(chan error, 1)
	go func() { over <- s.api.ServeBedrock(ctx, l) }()
	s.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			s.Error(err)
		}
	})
	return func(lines ...string) string {
		s.Helper()
		conn, err := (&net.Dialer{}).DialContext(s.Context(), "tcp", l.Addr().String())
		if err != nil {
			s.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Write([]byte(strings.Join(lines, "\n") + "\n\n")); err != nil {
			s.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			s.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
}

// The commands are there over HTTP, for programs such as curl, with the statuses of Bedrock.
func TestBedrockHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	curl := func(command, body, want string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "curl", "-s", "-w", " %{http_code}", s.url+"/bedrock/"+command, "-d", body).Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %s: %s, %v, want %s", command, body, out, err, want)
		}
	}
	curl("CreateJob", `{"name":"foo","data":{"value":1},"jobPriority":850}`, `{"jobID":1} 200`)
	curl("CreateJob", `{}`, "Missing name")
	curl("GetJob", `{"name":"f*"}`, `{"data":{"value":1},"jobID":1,"name":"foo"} 200`)
	curl("GetJob", `{"name":"f*","connection":"wait","timeout":10}`, " 404")
	curl("QueryJob", `{"jobID":1}`, `"state":"RUNNING"} 200`)
	curl("UpdateJob", `{"jobID":1,"data":{}}`, " 200")
	curl("DeleteJob", `{"jobID":1}`, " 405")
	curl("FinishJob", `{"jobID":1}`, " 200")
	curl("QueryJob", `{"jobID":1}`, " 404")
	curl("QueryJob", `[1]`, " 400")
	curl("Nothing", `{}`, "no_route")
}

// Whoever sends lines needs a token, of a role that may do it, and reaches the jobs of its tenant alone. What is changed, or refused, is audited.
func TestBedrockTokens(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	send := s.lines()
	bearer := func(token string) string { return "Authorization: Bearer " + token }
	if got := send("CreateJob", "name: foo"); !strings.HasPrefix(got, "401 ") {
		t.Error(got)
	}
	if got := send("CreateJob", "name: foo", bearer("weir_abc_def")); !strings.HasPrefix(got, "401 ") {
		t.Error(got)
	}
	theirs := s.newToken(redisstore.TokenAdmin, tenant, 0)
	for _, one := range []struct {
		token, want string
		lines       []string
	}{
		{tokens[redisstore.TokenRead], "403 this needs a token of role operate: yours has role read", []string{"CreateJob", "name: foo"}},
		{tokens[redisstore.TokenWork], "403 this needs a token of role operate: yours has role work", []string{"CreateJob", "name: foo"}},
		{tokens[redisstore.TokenOperate], "200 OK", []string{"CreateJob", "name: foo"}},
		{theirs, "404 No job with this jobID", []string{"QueryJob", "jobID: 1"}},
		{theirs, "404 No job found", []string{"GetJob", "name: *"}},
		{theirs, "404 No job with this jobID", []string{"DeleteJob", "jobID: 1"}},
		{tokens[redisstore.TokenRead], "200 OK", []string{"QueryJob", "jobID: 1"}},
		{tokens[redisstore.TokenOperate], "403 this needs a token of role work: yours has role operate", []string{"GetJob", "name: *"}},
		{tokens[redisstore.TokenAdmin], "200 OK", []string{"GetJob", "name: *"}},
		{tokens[redisstore.TokenWork], "200 OK", []string{"FinishJob", "jobID: 1"}},
	} {
		if got := send(append(one.lines, bearer(one.token))...); got != one.want {
			t.Errorf("%q: got %s, want %s", one.lines, got, one.want)
		}
	}
	log, err := s.store.AuditLog(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range log {
		told = append(told, e.Operation+" "+e.On+" "+http.StatusText(e.Status))
	}
	const want = "bedrock-GetJob * Forbidden, bedrock-CreateJob foo OK, bedrock-CreateJob foo Forbidden, bedrock-CreateJob foo Forbidden"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("the audit log is\n%s, want\n%s", got, want)
	}
}

// Who waits for a job, and whose token is revoked meanwhile, does not get it: it is ready for others. Neither does who leases runs.
func TestRevokedTokensGetNoJobs(t *testing.T) {
	t.Parallel()
	s, _, tokens := withTokens(t)
	send := s.lines()
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("POST", "/v1/workers", `{"types":[{"type":"Remote"}]}`).is(http.StatusOK, nil)
	waiting := map[string]func() string{
		"lines": func() string {
			return send("GetJob", "name: foo", "connection: wait", "timeout: 60000", "Authorization: Bearer "+tokens[redisstore.TokenWork])
		},
		"http": func() string {
			return s.with(tokens[redisstore.TokenWork]).ask("POST", "/bedrock/GetJob", `{"name":"foo","connection":"wait","timeout":60000}`).text()
		},
		"lease": func() string {
			return s.with(tokens[redisstore.TokenWork]).ask("POST", "/v1/runs/lease", `{"types":["Remote"],"wait":"1m"}`).text()
		},
	}
	answers := make(chan string, len(waiting))
	for name, wait := range waiting {
		go func() { answers <- name + " " + wait() }()
	}
	s.with(tokens[redisstore.TokenWork]).ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	if err := s.store.RevokeToken(t.Context(), strings.Split(tokens[redisstore.TokenWork], "_")[1]); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); s.with(tokens[redisstore.TokenWork]).ask("GET", "/v1/me", nil).status == http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a token is valid long after it was revoked")
		}
	}
	s.ask("POST", "/bedrock/CreateJobs", `{"jobs":[{"name":"foo"},{"name":"foo"}]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs", `{"type":"Remote"}`).is(http.StatusCreated, nil)
	for range waiting {
		if got := soon(t, "an answer", answers); !strings.Contains(got, "401") || !strings.Contains(got, "no longer valid") {
			t.Errorf("who waited was answered %s", got)
		}
	}
	for range 2 {
		s.ask("POST", "/bedrock/GetJob", `{"name":"foo","connection":"wait","timeout":20000}`).is(http.StatusOK, nil)
	}
	if got := s.ask("POST", "/v1/runs/lease", `{"types":["Remote"],"wait":"20s"}`).text(); !strings.Contains(got, `"type":"Remote"`) {
		t.Errorf("the run that was handed back: %s", got)
	}
}

// with is the service for who has another token.
func (s *service) with(token string) *service {
	other := *s
	other.token = token
	return &other
}

// text is the status and the body.
func (a *answer) text() string { return strconv.Itoa(a.status) + " " + string(a.body) }
