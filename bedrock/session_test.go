package bedrock_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/bedrock"
)

// TestSession: what Bedrock's own documentation shows of a session with nc is what happens here.
func TestSession(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-12-29 07:38:51")
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	nc := exec.CommandContext(t.Context(), "nc", host, port)
	in, err := nc.StdinPipe()
	if err != nil {
		t.Fatalf("nc, which make test installs: %v", err)
	}
	out, err := nc.StdoutPipe()
	if err == nil {
		err = nc.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = nc.Process.Kill()
		_ = nc.Wait()
	}()
	say := func(command, answer string) {
		t.Helper()
		if _, err := io.WriteString(in, command+"\n\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(answer))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != answer {
			t.Fatalf("%s\ngot  %q, %v\nwant %q", command, got, err, answer)
		}
	}
	say("CreateJob\nname: foo\ndata: {\"value\":1}\nrepeat: finished, +1 minute", "200 OK\nContent-Length: 11\n\n{\"jobID\":1}")
	say("GetJob\nname: foo", "200 OK\nContent-Length: 43\n\n{\"data\":{\"value\":1},\"jobID\":1,\"name\":\"foo\"}")
	say("UpdateJob\njobID: 1\ndata: {\"value\":2}", "200 OK\n\n")
	say("QueryJob\njobID: 1", "200 OK\nContent-Length: 61\n\n{\"data\":{\"value\":2},\"jobID\":1,\"name\":\"foo\",\"state\":\"RUNNING\"}")
	say("FinishJob\njobID: 1\ndata: {\"value\":3}", "200 OK\n\n")
	say("GetJob\nname: foo", "404 No job found\n\n")
	clock.Set(clock.Now().Add(time.Minute))
	say("GetJob\nname: foo\nConnection: wait\nTimeout: 60000", "200 OK\nContent-Length: 43\n\n{\"data\":{\"value\":3},\"jobID\":1,\"name\":\"foo\"}")
}

// Requests come in lines, with or without a carriage return, and with bodies.
func TestReadRequest(t *testing.T) {
	t.Parallel()
	r := bufio.NewReader(strings.NewReader("\n\nGetJob\nName:  a b \n\nPOST\r\nContent-Length: 12\r\n\r\n{\"jobID\": 7}" +
		"X / HTTP/1.1\ncontent-type: application/x-www-form-urlencoded\nContent-Length: 17\n\nname=a%20b&data=c" +
		"no colon\n\nA\nno colon\nname: x\n\nA\nContent-Length: 2\n\n[]B\n\n"))
	for _, want := range []struct {
		method, name, text string
		http, crlf         bool
	}{
		{method: "GetJob", name: "a b"},
		{method: "POST", crlf: true},
		{method: "X", name: "a b", http: true},
		{method: "no", text: "400 Malformed command"},
		{method: "A", name: "x", text: "400 Malformed header"},
		{method: "A", text: "400 Malformed body"},
		{method: "B"},
	} {
		q, err := bedrock.ReadRequest(r)
		if (err == nil) != (want.text == "") || err != nil && !strings.HasPrefix(err.Error(), want.text) {
			t.Fatalf("%+v: %v", want, err)
		}
		if q.Method != want.method || q.Params["name"] != want.name || q.HTTP != want.http || q.CRLF != want.crlf {
			t.Errorf("got %+v, want %+v", q, want)
		}
	}
	if _, err := bedrock.ReadRequest(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	for text, want := range map[string]string{
		"A\nb: c": io.ErrUnexpectedEOF.Error(), "A\nContent-Length: x\n\n": "400 Malformed Content-Length", "A\nContent-Length: 2000000\n\n": "413 A body",
		"A\nTransfer-Encoding: chunked\n\n": "411 ", "A\n" + strings.Repeat("a: b\n", 101) + "\n": "431 Too many", strings.Repeat("x", 2<<20): "431 A line",
		"A\nContent-Length: 5\n\nxx": io.ErrUnexpectedEOF.Error(),
	} {
		if _, err := bedrock.ReadRequest(bufio.NewReader(strings.NewReader(text))); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: got %v, want %s", text, err, want)
		}
	}
}

// A page in a browser can reach the port, and must not be able to do anything there.
func TestPagesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, lines := range [][]string{
		{"POST / HTTP/1.1", "Host: x", "Content-Type: text/plain", "Content-Length: 22\n\nCreateJob\nname: foo\n\n"},
		{"CreateJob / HTTP/1.1", "name: foo", "Origin: http://evil.example"},
	} {
		c := s.dial()
		c.send(lines...)
		if status, _ := c.read(); !strings.HasPrefix(status, "HTTP/1.1 4") {
			t.Errorf("%q: %s", lines, status)
		}
	}
	s.dial().want(noJob, "GetJob", "name: *")
}

// FuzzReadRequest: whatever comes is a request, or a reason, and what is read is what the next one does not see.
func FuzzReadRequest(f *testing.F) {
	for _, text := range []string{"", "GetJob\nname: foo\n\n", "A / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "A\nContent-Length: -1\n\n", "\r\n\r\nA\n:\n\n", "A b\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := bufio.NewReader(strings.NewReader(text))
		for n := 0; ; n++ {
			q, err := bedrock.ReadRequest(r)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err == nil {
				if _, err := bedrock.CommandOf(q.Method); err != nil && bedrock.Refused(err).Status != 400 {
					t.Fatal(err)
				}
				_ = bedrock.Match(q.Method, q.Params["name"])
			} else if a := bedrock.Refused(err); a.Status < 400 || a.Status >= 500 || strings.ContainsAny(a.Text, "\r\n") {
				t.Fatalf("%+v", a)
			}
			if n > len(text) {
				t.Fatal("it does not end")
			}
			if err != nil && r.Buffered() == 0 {
				break
			}
		}
	})
}
