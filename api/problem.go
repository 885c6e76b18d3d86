package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Kind is what callers tell errors apart by: a word, the status of an answer over HTTP, and
// the exit code of a command.
type Kind struct {
	Code   string
	Status int
	Exit   int
}

// The kinds of error that no error of package job stands for.
var (
	kindOther   = Kind{"error", http.StatusInternalServerError, 1}
	kindUsage   = Kind{"usage", http.StatusUnprocessableEntity, 2}
	kindTimeout = Kind{"timeout", http.StatusGatewayTimeout, 5}
)

// kinds are the errors that callers tell apart. The first that an error wraps counts.
var kinds = []struct {
	err error
	Kind
}{
	{job.ErrFailed, Kind{"failed", http.StatusConflict, 4}},
	{job.ErrStatus, Kind{"status", http.StatusConflict, 6}},
	{job.ErrExists, Kind{"exists", http.StatusConflict, 6}},
	{job.ErrServed, Kind{"served", http.StatusConflict, 6}},
	{job.ErrFull, Kind{"full", http.StatusTooManyRequests, 6}},
	{job.ErrLocked, Kind{"locked", http.StatusLocked, 6}},
	{job.ErrAmbiguous, Kind{"ambiguous", http.StatusConflict, 6}},
	{job.ErrClosed, Kind{"closed", http.StatusConflict, 6}},
	{job.ErrFenced, Kind{"fenced", http.StatusConflict, 6}},
	{job.ErrMoved, Kind{"moved", http.StatusConflict, 1}},
	{job.ErrConfig, Kind{"configuration", http.StatusInternalServerError, 2}},
	{job.ErrName, kindUsage},
	{job.ErrValue, kindUsage},
	{job.ErrPort, kindUsage},
	{job.ErrUnknownType, Kind{"unknown_type", http.StatusUnprocessableEntity, 2}},
	{job.ErrID, kindUsage},
	{port.ErrName, kindUsage},
	{port.ErrEncoding, kindUsage},
	{port.ErrParams, kindUsage},
	{job.ErrNotFound, Kind{"not_found", http.StatusNotFound, 3}},
	{job.ErrTooLarge, Kind{"too_large", http.StatusRequestEntityTooLarge, 1}},
	{job.ErrLimit, Kind{"limit", http.StatusTooManyRequests, 1}},
	{job.ErrRate, Kind{"rate", http.StatusTooManyRequests, 1}},
	{job.ErrUnreachable, Kind{"unreachable", http.StatusServiceUnavailable, 7}},
	{job.ErrUnavailable, Kind{"unavailable", http.StatusServiceUnavailable, 1}},
	{job.ErrRefused, Kind{"refused", http.StatusInternalServerError, 1}},
	{job.ErrCodec, Kind{"codec", http.StatusInternalServerError, 1}},
	{job.ErrForbidden, Kind{"forbidden", http.StatusForbidden, 8}},
}

// KindOf returns the kind of an error.
func KindOf(err error) Kind {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.Kind
		}
	}
	if p := new(Problem); errors.As(err, &p) {
		for _, k := range kinds {
			if k.Code == p.Code {
				return k.Kind
			}
		}
		if p.Status < http.StatusInternalServerError {
			return Kind{p.Code, p.Status, kindUsage.Exit}
		}
	}
	if len(graphfile.Problems(err)) > 0 {
		return kindUsage
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return kindTimeout
	}
	return kindOther
}

// Problem is the answer when a request could not be carried out: a problem document of RFC
// 9457, with a word to tell the kinds apart.
type Problem struct {
	Type   string   `json:"type" doc:"always about:blank: code tells the kinds apart"`
	Title  string   `json:"title" doc:"the status in words"`
	Status int      `json:"status" doc:"the HTTP status"`
	Code   string   `json:"code" doc:"the kind of problem, in one word"`
	Detail string   `json:"detail" doc:"what was wrong, where, and what to do"`
	Errors []Detail `json:"errors,omitempty" doc:"each thing that is wrong, if there are several"`
	// Refusal is for Weir's own client, so that its errors wrap the same ones.
	Refusal *storecall.Refusal `json:"refusal,omitempty" hidden:"true"`

	retry time.Duration // when the request may be sent again; zero: that is not known
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	if p.retry == 0 {
		return nil
	}
	return http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(p.retry.Seconds())))}}
}

// Detail is one of several things that are wrong.
type Detail struct {
	Where   string `json:"where,omitempty" doc:"such as query.limit, or the line of a file"`
	Message string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problem makes one of a kind.
func problem(k Kind, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(k.Status), Status: k.Status, Code: k.Code, Detail: fmt.Sprintf(format, args...)}
}

// wrong is the answer to a request that itself is wrong.
func wrong(format string, args ...any) *Problem { return problem(kindUsage, format, args...) }

// malformed is the answer to what is no request at all.
func malformed(format string, args ...any) *Problem {
	return problem(Kind{"malformed", http.StatusBadRequest, 2}, format, args...)
}

// problemOf is the answer that an error becomes.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	p = problem(KindOf(err), "%s", err.Error())
	for _, one := range graphfile.Problems(err) {
		where := one.Path
		if one.Line > 0 {
			where = strings.TrimSpace(fmt.Sprintf("%d:%d %s", one.Line, one.Column, one.Path))
		}
		p.Errors = append(p.Errors, Detail{Where: where, Message: one.Text})
	}
	return p
}

// problems turns huma's answers to wrong parameters into Problems.
func problems(hc huma.Context, _ string, v any) (any, error) {
	p, is := v.(*Problem)
	m, raised := v.(*huma.ErrorModel)
	if !is && !raised {
		return v, nil
	}
	if raised {
		p = raisedProblem(m)
	}
	if _, w := unwrap(hc); inCozy(w) {
		hc.SetHeader("Content-Type", apiType)
		return apiErrorsOf(p), nil
	}
	if raised && len(p.Errors) == 1 {
		p.Errors = nil // its detail says it
	}
	return p, nil
}

// raisedProblem is what huma found wrong.
func raisedProblem(m *huma.ErrorModel) *Problem {
	k := kindUsage
	if m.Status != http.StatusUnprocessableEntity {
		k = Kind{"malformed", m.Status, 2}
	}
	if m.Status >= http.StatusInternalServerError {
		k = kindOther
	}
	p := problem(k, "%s", m.Detail)
	for _, e := range m.Errors {
		if strings.HasPrefix(e.Message, "invalid date/time for format") {
			e.Message = "it is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z"
		}
		p.Errors = append(p.Errors, Detail{Where: e.Location, Message: e.Message})
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Message
		if p.Errors[0].Where != "" {
			p.Detail = p.Errors[0].Where + ": " + p.Detail
		}
	}
	return p
}

// writeProblem answers outside of an operation.
func writeProblem(w http.ResponseWriter, p *Problem) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if inCozy(w) {
		w.Header().Set("Content-Type", apiType)
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(apiErrorsOf(p))
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// Codes are all words that a Problem can have as its code, sorted.
func Codes() []string {
	all := []string{kindOther.Code, kindUsage.Code, kindTimeout.Code, "malformed", "unauthorized", "forbidden", "no_route", kindReused.Code}
	for _, k := range kinds {
		all = append(all, k.Code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
