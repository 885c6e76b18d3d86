package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/sandbox"
)

// retryStatus is that of a payload which is tried again, as was to be expected.
const retryStatus = 199

// statusRE is the line of a reply that ends the payload that is next.
var statusRE = regexp.MustCompile(`^[1-5][0-9][0-9]( .*)?$`)

// ask runs a batch by a request. It ends all of its tasks.
func (p *Pool) ask(tasks []*task) {
	results, err := p.request(tasks)
	for i, t := range tasks {
		if err != nil {
			t.fail(err)
			continue
		}
		t.result = results[i]
		t.done()
	}
}

func (p *Pool) request(tasks []*task) ([]handler.Result, error) {
	h := tasks[0].handler
	limit := time.Duration(0)
	for _, t := range tasks {
		limit += t.limit()
	}
	ctx, cancel := context.WithTimeoutCause(p.ctx, limit, fmt.Errorf("no answer after %s", limit))
	defer cancel()
	var body bytes.Buffer
	for _, t := range tasks {
		var text string
		if json.Unmarshal(t.Data, &text) == nil {
			body.WriteString(text)
		} else {
			body.Write(t.Data)
		}
		body.WriteByte('\n')
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.Definition.Body, &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	req.Header.Set("Weir-Type", h.Type)
	req.Header.Set("Weir-Payloads", strconv.Itoa(len(tasks)))
	if len(tasks) == 1 {
		req.Header.Set("Idempotency-Key", tasks[0].ID)
	}
	client := p.cfg.HTTP.Client(0)
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	defer res.Body.Close()
	most := int64(handler.MaxResult)
	text, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("the answer has more than %d bytes", most)
	}
	results, err := replies(len(tasks), res.StatusCode, string(text))
	for i := range results {
		results[i].After = retryAfter(res.Header, time.Now())
	}
	return results, err
}

// mostAfter is the longest time that an answer may ask for.
const mostAfter = 24 * time.Hour

// retryAfter is for how long an answer asks its client to wait: some seconds, or until a time.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, mostAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), mostAfter)
	}
	return 0
}

// replies reads an answer to n payloads: a line with a status, and perhaps a result, ends each, and those before it are what it printed. To a
// single payload the answer's own status and body count, unless its last line is one with a status, see sole.
func replies(n, status int, text string) ([]handler.Result, error) {
	if n == 1 {
		return sole(status, text)
	}
	if handler.CodeOf(status) == handler.Failed {
		all := make([]handler.Result, n)
		for i := range all {
			all[i] = whole(status, text)
		}
		return all, nil
	}
	if status/100 != 2 {
		return nil, errors.New(why(status, text))
	}
	all := make([]handler.Result, 0, n)
	var lines []handler.Line
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if !statusRE.MatchString(line) {
			lines = append(lines, handler.Line{Text: line})
			continue
		}
		all, lines = append(all, reply(line, lines)), nil
	}
	if len(all) != n {
		return nil, fmt.Errorf("the answer has %d lines with a status, for %d payloads: send one for each", len(all), n)
	}
	return all, nil
}

// sole reads an answer to a single payload: its last line counts as one with a status if what is behind the blank is JSON, or there is none.
func sole(status int, text string) ([]handler.Result, error) {
	if status/100 == 2 {
		var lines []handler.Line
		for line := range strings.Lines(text) {
			lines = append(lines, handler.Line{Text: strings.TrimRight(line, "\r\n")})
		}
		if n := len(lines) - 1; n >= 0 {
			last := lines[n].Text
			_, result, more := strings.Cut(last, " ")
			if statusRE.MatchString(last) && (!more || json.Valid([]byte(result))) {
				return []handler.Result{reply(last, lines[:n])}, nil
			}
		}
	}
	if handler.CodeOf(status) == "" {
		return nil, fmt.Errorf("the answer has status %d: answer with 1xx, 2xx, 4xx or 5xx", status)
	}
	return []handler.Result{whole(status, text)}, nil
}

// reply is what a line with a status says.
func reply(line string, printed []handler.Line) handler.Result {
	code, result, _ := strings.Cut(line, " ")
	status, _ := strconv.Atoi(code) // it is three digits
	one := whole(status, result)
	one.Output = printed
	return one
}

// why is the reason that an answer gives: its status, and the beginning of its body, as one line.
func why(status int, text string) string {
	const most = 1 << 10
	said := strings.Join(strings.Fields(strings.ToValidUTF8(clip(text, most), "\uFFFD")), " ")
	if said != "" {
		said = ": " + said
	}
	return "the answer has status " + strconv.Itoa(status) + said
}

// later tells whether a status means that the same request may succeed later, though it is 4xx: too many requests, or one that took too long.
func later(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// whole is a result by the status and text of an answer, as JSON if it is that.
func whole(status int, text string) handler.Result {
	done := sandbox.Done{Status: status}
	if handler.CodeOf(status) != handler.OK {
		done.Error = why(status, text)
	}
	if later(status) {
		done.Status = retryStatus
		return resultOf(done)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
	case !utf8.ValidString(text):
		done = sandbox.NotText(done)
	case json.Valid([]byte(text)):
		done.Result = json.RawMessage(text)
	default:
		done.Result, _ = json.Marshal(text) // a string always can be
	}
	return resultOf(done)
}
