package bedrock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/port"
)

// Limits of a request.
const (
	MaxBody    = 1 << 20 // bytes of a body, and of a header
	maxLine    = MaxBody + 1024
	maxHeaders = 100
	maxRequest = 2 << 20 // bytes of all headers together
)

// Request is a command with its parameters.
type Request struct {
	Method string
	// Params are the headers, and what a body gives besides: by their names in lower case.
	Params map[string]string
	given  map[string]bool // those that a body gave
	twice  map[string]bool // those that came in several headers
	// HTTP says that the client wrote its command as the first line of HTTP, and reads an answer of that kind.
	HTTP bool
	// CRLF says that the client ends its lines as HTTP does.
	CRLF bool
}

// malformedError is a request that cannot be read. If last is true nothing behind it can be, either.
type malformedError struct {
	status int
	text   string
	last   bool
}

// Error implements error.
func (e *malformedError) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

func malformed(last bool, status int, format string, args ...any) error {
	return &malformedError{status: status, text: fmt.Sprintf(format, args...), last: last}
}

// ReadRequest reads the next request of a connection. Empty lines before it are passed over. The error is io.EOF if there is none, and a
// *malformedError if it cannot be understood.
func ReadRequest(r *bufio.Reader) (*Request, error) {
	q := &Request{Params: map[string]string{}}
	line, err := q.line(r)
	for err == nil && line == "" {
		line, err = q.line(r)
	}
	if err != nil {
		return nil, err
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{""}
	}
	q.Method, q.HTTP = words[0], strings.HasPrefix(strings.ToUpper(words[len(words)-1]), "HTTP/") && len(words) > 1
	size, wrong := 0, error(nil)
	for count := 0; ; count++ {
		line, err := q.line(r)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		if size += len(line); size > maxRequest || count == maxHeaders {
			return nil, malformed(true, 431, "Too many headers: use at most %d, and %d bytes", maxHeaders, maxRequest)
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" {
			wrong = malformed(false, 400, "Malformed header %.40q: write it as name: value", line)
			continue
		}
		if _, twice := q.Params[name]; twice {
			if q.twice == nil {
				q.twice = map[string]bool{}
			}
			q.twice[name] = true
		}
		q.Params[name] = strings.TrimSpace(value)
	}
	if err := q.body(r); err != nil {
		return q, err
	}
	if len(words) > 1 && !q.HTTP {
		wrong = malformed(false, 400, "Malformed command %.40q: write it alone on its line", line)
	}
	return q, wrong
}

// line reads a line, without its end.
func (q *Request) line(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return "", malformed(true, 431, "A line has more than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		text := line[:len(line)-1]
		if q.CRLF = bytes.HasSuffix(text, []byte("\r")); q.CRLF {
			text = text[:len(text)-1]
		}
		return string(text), nil
	}
}

// body reads the body, which may give more parameters: as a JSON object, or encoded as a form.
func (q *Request) body(r *bufio.Reader) error {
	if q.Params["transfer-encoding"] != "" {
		return malformed(true, 411, "Transfer-Encoding is not understood: send Content-Length")
	}
	text, ok := q.Params["content-length"]
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return malformed(true, 400, "Malformed Content-Length")
	}
	if n > MaxBody {
		return malformed(true, 413, "A body has at most %d bytes", MaxBody)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r, raw); err != nil {
		return io.ErrUnexpectedEOF
	}
	if strings.HasPrefix(strings.ToLower(q.Params["content-type"]), "application/x-www-form-urlencoded") && !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return q.form(string(raw))
	}
	return q.Add(raw)
}

// form adds parameters that are encoded as those of a form.
func (q *Request) form(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return malformed(false, 400, "Malformed body: %v", err)
	}
	more := make(map[string]string, len(values))
	for name, all := range values {
		key := strings.ToLower(name)
		if _, twice := more[key]; twice || len(all) > 1 {
			return malformed(false, 400, "Malformed body: it has %.40q twice", key)
		}
		more[key] = all[0]
	}
	q.put(more)
	return nil
}

// Add adds the parameters of a JSON object: what is no string is taken as JSON. Nothing adds none.
func (q *Request) Add(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	more, err := params(raw)
	if err != nil {
		return malformed(false, 400, "Malformed body: %v", err)
	}
	q.put(more)
	return nil
}

// put adds parameters that a body gives.
func (q *Request) put(more map[string]string) {
	if q.given == nil {
		q.given = map[string]bool{}
	}
	for name, value := range more {
		q.Params[name], q.given[name] = value, true
	}
}

// params are the members of a JSON object as parameters.
func params(raw []byte) (map[string]string, error) {
	var object map[string]json.RawMessage
	if port.Check(raw) != nil || json.Unmarshal(raw, &object) != nil || object == nil {
		return nil, errors.New("it is not a JSON object")
	}
	if err := strict.Check(raw); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	out := make(map[string]string, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := string(object[name])
		if value == "null" {
			continue
		}
		if value[0] == '"' {
			if err := json.Unmarshal(object[name], &value); err != nil {
				return nil, err
			}
		}
		key := strings.ToLower(name)
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("it has %.40q twice", key)
		}
		out[key] = value
	}
	return out, nil
}

// Response is what a command is answered.
type Response struct {
	Status int
	Text   string // of the status: OK, or what is wrong
	Body   []byte // JSON; nil for none
	given  []given
}

// Gives tells whether the client gets jobs with the answer.
func (r *Response) Gives() bool { return len(r.given) > 0 }

// statusLine is the first line of an answer.
func (r *Response) statusLine() string { return strconv.Itoa(r.Status) + " " + r.Text }

// write writes the answer as the client of a request reads it.
func (r *Response) write(w io.Writer, q *Request) error {
	var b bytes.Buffer
	end := "\n"
	if q.CRLF || q.HTTP {
		end = "\r\n"
	}
	if q.HTTP {
		b.WriteString("HTTP/1.1 ")
	}
	b.WriteString(r.statusLine() + end)
	if q.HTTP && r.Body != nil {
		b.WriteString("Content-Type: application/json" + end)
	}
	if q.HTTP || r.Body != nil {
		b.WriteString("Content-Length: " + strconv.Itoa(len(r.Body)) + end)
	}
	b.WriteString(end)
	b.Write(r.Body)
	_, err := w.Write(b.Bytes())
	return err
}
