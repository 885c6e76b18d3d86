package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	proxyChunk = 64 << 10
	// replyQuiet is how long the server must be silent before a dropped reply
	// counts as complete, so that a whole pipeline has run before the cut.
	replyQuiet = 20 * time.Millisecond
)

// Proxy passes bytes between clients and one server, and loses replies on
// demand. Its methods may be called from any goroutine.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup
	dropped  atomic.Int64

	mu     sync.Mutex
	closed bool
	target string
	links  map[*link]struct{}
	drops  int    // replies still to drop
	match  []byte // in lower case
	answer string // instead of what the server would say
	from   []byte // replaced by to in what clients send
	to     []byte
}

// link is one client connection and its connection to the server.
type link struct {
	client, server net.Conn
	dropping       atomic.Bool // the next reply is lost, then the link is cut
}

// StartProxy listens on a free port of 127.0.0.1 in front of the server at addr
// (host:port), until the test ends. The server may come and go meanwhile.
func StartProxy(t TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting proxy: %v", err)
	}
	p := &Proxy{target: addr, listener: l, links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host:port the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the proxy's address as a redis:// URL of database 0.
func (p *Proxy) URL() string { return "redis://" + p.Addr() + "/0" }

// DropReplies makes the next n chunks of client data that contain match, in any
// case, lose their reply: the server gets and answers the request, the answer is
// swallowed and the client's connection closed. A chunk is what one read
// returns, in practice one command or pipeline of up to 64 KiB. A new call
// replaces what is left of an earlier one.
func (p *Proxy) DropReplies(n int, match string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops, p.match = n, []byte(strings.ToLower(match))
}

// Dropped returns how many replies have been lost; a reply counts before its
// client can notice.
func (p *Proxy) Dropped() int { return int(p.dropped.Load()) }

// Redirect makes connections from now on lead to another server, and cuts those there are.
func (p *Proxy) Redirect(addr string) {
	p.mu.Lock()
	p.target = addr
	p.mu.Unlock()
	p.Cut()
}

// Answer makes all commands be answered with an error and not reach the server, until it
// is called with an empty text.
func (p *Proxy) Answer(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = text
}

// Replace makes a text in what clients send another one of the same length.
func (p *Proxy) Replace(from, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.to = []byte(from), []byte(to)
}

// replaced returns what to send of some data, and what to keep back until more has come, as the
// text may begin there.
func (p *Proxy) replaced(data []byte) (send, keep []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.from) == 0 {
		return data, nil
	}
	data = bytes.ReplaceAll(data, p.from, p.to)
	for n := min(len(p.from)-1, len(data)); n > 0; n-- {
		if bytes.HasSuffix(data, p.from[:n]) {
			return data[:len(data)-n], bytes.Clone(data[len(data)-n:])
		}
	}
	return data, nil
}

// refusal is what is sent instead of passing a chunk on, empty to pass it on.
func (p *Proxy) refusal(chunk []byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer == "" {
		return ""
	}
	return strings.Repeat("-"+p.answer+"\r\n", commands(chunk))
}

// commands counts those in a chunk, each a list of texts.
func commands(chunk []byte) (n int) {
	for r := bufio.NewReader(bytes.NewReader(chunk)); ; n++ {
		var words, size int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &words); err != nil {
			return n
		}
		for range words {
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				return n
			}
			if _, err := r.Discard(size + 2); err != nil {
				return n
			}
		}
	}
}

// Cut closes all current connections. New ones are welcome.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server}
	defer l.cut()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	p.running.Go(func() {
		defer l.cut()
		p.requests(l)
	})
	p.replies(l)
}

// add reports false when the proxy has closed and nobody would cut the link.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) requests(l *link) {
	buf := make([]byte, proxyChunk)
	var kept []byte
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			// Marked before the server can see the request, so its reply
			// cannot slip through.
			if !l.dropping.Load() && p.takeDrop(buf[:n]) {
				l.dropping.Store(true)
			}
			to := l.server
			var text []byte
			text, kept = p.replaced(append(kept, buf[:n]...))
			if no := p.refusal(text); no != "" {
				to, text = l.client, []byte(no)
			}
			if _, err := to.Write(text); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// takeDrop reports whether the reply to chunk is to be lost, and uses up one
// of the drops if so.
func (p *Proxy) takeDrop(chunk []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops <= 0 || !bytes.Contains(bytes.ToLower(chunk), p.match) {
		return false
	}
	p.drops--
	return true
}

func (p *Proxy) replies(l *link) {
	buf := make([]byte, proxyChunk)
	for {
		n, err := l.server.Read(buf)
		if n > 0 && l.dropping.Load() {
			l.swallow(buf)
			p.dropped.Add(1)
			return
		}
		if n > 0 {
			if _, err := l.client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// swallow reads the rest of a reply until the server falls silent.
func (l *link) swallow(buf []byte) {
	for {
		_ = l.server.SetReadDeadline(time.Now().Add(replyQuiet))
		if _, err := l.server.Read(buf); err != nil {
			return
		}
	}
}

func (l *link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}
