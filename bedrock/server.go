package bedrock

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Limits of connections.
const (
	maxConnections = 4096
	// idleTime is for how long a connection is kept on which nothing is asked: its client may have a job to do.
	idleTime = time.Hour
	// readTime is how long a request may take to arrive once it has begun, and writeTime how long its answer may.
	readTime  = 30 * time.Second
	writeTime = 30 * time.Second
)

// Handler answers requests.
type Handler interface {
	// Serve carries out what a client at an address asks for, and calls send with the answer. ctx ends when the client has gone, or the
	// server is to stop.
	Serve(ctx context.Context, from string, q *Request, send func(*Service, *Response))
}

// Serve answers the requests of all connections to a listener, one of a connection at a time, until ctx ends; those in progress are answered
// then. It closes the listener, and returns when all connections are closed.
func Serve(ctx context.Context, l net.Listener, h Handler) error {
	s := &server{handler: h, open: map[net.Conn]bool{}}
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		s.idle()
	})
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			defer s.group.Wait()
			if ctx.Err() != nil {
				return nil
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			s.idle()
			return err
		}
		if !s.enter(c) {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.Write([]byte("503 Too many connections\n\n"))
			_ = c.Close()
			continue
		}
		s.group.Go(func() {
			defer s.leave(c)
			s.talk(ctx, c)
		})
	}
}

// server is what Serve knows of its connections.
type server struct {
	handler Handler
	group   sync.WaitGroup
	mu      sync.Mutex
	over    bool
	open    map[net.Conn]bool // whether a request of it is being answered
}

func (s *server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.open) >= maxConnections {
		return false
	}
	s.open[c] = false
	return true
}

func (s *server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// busy notes whether a request of a connection is being answered, and tells whether the connection goes on.
func (s *server) busy(c net.Conn, busy bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = busy
	return !s.over
}

// idle lets no connection go on, and closes those on which nothing is being answered.
func (s *server) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for c, busy := range s.open {
		if !busy {
			_ = c.Close()
		}
	}
}

// talk answers the requests of a connection, until it ends or one cannot be read.
func (s *server) talk(ctx context.Context, c net.Conn) {
	r := bufio.NewReaderSize(c, 16<<10)
	var last taken // by the last answer
	for {
		_ = c.SetReadDeadline(time.Now().Add(idleTime))
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, syscall.ECONNRESET) || last.answer != nil && len(last.answer.given) > 0 && gone(c) { // it was closed with an answer that nobody has read
				last.handBack()
			}
			return
		}
		last = taken{}
		_ = c.SetReadDeadline(time.Now().Add(readTime))
		q, err := ReadRequest(r)
		var wrong *malformedError
		if err != nil && !errors.As(err, &wrong) || !s.busy(c, true) {
			return
		}
		if q == nil {
			q = &Request{}
		}
		if q.Params["origin"] != "" {
			wrong = &malformedError{403, "Pages of a browser may not send commands", true}
		}
		if wrong != nil {
			_, err = s.answer(c, q, nil, Refused(wrong))
		} else {
			last, err = s.serve(ctx, c, r, q)
		}
		end := wrong != nil && wrong.last || q.Params["connection"] == "close"
		if !s.busy(c, false) || err != nil || end {
			return
		}
	}
}

// serve answers one request. Whether the client goes meanwhile is looked for.
func (s *server) serve(ctx context.Context, c net.Conn, r *bufio.Reader, q *Request) (got taken, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = c.SetReadDeadline(time.Now().Add(maxWait + idleTime))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if q.waits() {
			if _, err := r.Peek(1); err != nil {
				cancel()
			}
		}
	}()
	sent := false
	s.handler.Serve(ctx, c.RemoteAddr().String(), q, func(service *Service, a *Response) {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the look, if it goes on
		<-watched
		sent = true
		got, err = s.answer(c, q, service, a)
	})
	if !sent {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-watched
	}
	return got, err
}

// taken is what a client was given by one answer.
type taken struct {
	service *Service
	answer  *Response
}

// handBack makes it ready again, but for what has ended.
func (t taken) handBack() {
	if t.answer != nil {
		t.service.Undelivered(context.Background(), t.answer)
	}
}

// answer sends an answer, and tells the service whether it arrived.
func (s *server) answer(c net.Conn, q *Request, service *Service, a *Response) (got taken, err error) {
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	err = a.write(c, q)
	if len(a.given) == 0 {
		return got, err
	}
	if err == nil && gone(c) {
		err = io.ErrClosedPipe
	}
	if err != nil {
		service.Undelivered(context.Background(), a)
		return got, err
	}
	service.Delivered(context.Background(), a)
	return taken{service, a}, nil
}
