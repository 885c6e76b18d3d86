package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// ingest takes orders over HTTP: POST /orders with a JSON array of them, and an Idempotency-Key. They are in Redis when it
// answers 202, all or none; a request that is repeated with the same key does nothing more.
func ingest(h *client.Handle) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var orders []json.RawMessage
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&orders); err != nil {
			http.Error(w, "the body is to be a JSON array of orders: "+err.Error(), http.StatusBadRequest)
			return
		}
		messages := make([]any, len(orders))
		for i, o := range orders {
			messages[i] = o
		}
		switch err := h.WriteOnce(r.Context(), r.Header.Get("Idempotency-Key"), "orders", messages...); {
		case errors.Is(err, job.ErrFull): // the shop is behind: it keeps no more than it can work on
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case job.Temporary(err):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	return mux
}

// perRequest is how many orders a request has.
const perRequest = 100

// load sends the orders from a number on, as customers would.
func load(ctx context.Context, url string, from, to int) error {
	for from < to {
		n := min(perRequest, to-from)
		orders := make([]Order, n)
		for i := range orders {
			orders[i] = orderOf(from + i)
		}
		body, err := json.Marshal(orders)
		if err != nil {
			return err
		}
		if err := post(ctx, url+"/orders", fmt.Sprintf("orders-%d", from), body); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// post sends a request until it is taken.
func post(ctx context.Context, url, key string, body []byte) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusAccepted:
			return nil
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		default:
			return fmt.Errorf("sending %s: %s", key, resp.Status)
		}
	}
}

// sleep waits, or returns why it did not.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
