package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/access.log")

// odd are lines that are not, or just about, lines of a log.
var odd = []string{
	"",
	"   ",
	"hello",
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200`,
	`10.0.0.9 - - [40/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 999 1`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 many`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET /unclosed 200 1`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "agent" soon`,
	"\xff\xfe binary \x00\x01",
	"10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] \"GET /\xff\xfe HTTP/1.1\" 404 -",
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "\x16\x03\x01" 400 226 "-" "-"`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET /a\"b HTTP/1.1" 200 7 "-" "an \"agent\"" 0.25`,
	`::1 - frank [10/Oct/2026:23:55:36 -0700] "HEAD /empty HTTP/2.0" 304 -` + "\r",
}

// sample makes a log of so many lines, always the same for the same seed.
func sample(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 2026))
	at := time.Date(2026, time.October, 9, 21, 0, 0, 0, time.UTC)
	var b strings.Builder
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(40_000)) * time.Millisecond)
		if rng.IntN(40) == 0 {
			b.WriteString(odd[rng.IntN(len(odd))] + "\n")
			continue
		}
		client := fmt.Sprintf("192.0.2.%d", 1+int(rng.ExpFloat64()*12)%254)
		path := []string{"/", "/index.html", "/style.css", "/api/orders", "/api/orders/" + strconv.Itoa(rng.IntN(50)), "/search?q=" + strconv.Itoa(rng.IntN(99))}[rng.IntN(6)]
		status := []int{200, 200, 200, 200, 200, 204, 301, 304, 404, 500}[rng.IntN(10)]
		size := strconv.Itoa(rng.IntN(50_000))
		if status == 304 || status == 204 {
			size = "-"
		}
		fmt.Fprintf(&b, `%s - - [%s] "GET %s HTTP/1.1" %d %s`, client, at.In(time.FixedZone("", 7200)).Format(logTime), path, status, size)
		if i%3 > 0 {
			b.WriteString(` "https://example.org/" "Mozilla/5.0 (X11; Linux x86_64)"`)
			fmt.Fprintf(&b, " %.3f", rng.ExpFloat64()/10)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The sample in testdata is what the generator makes.
func TestSample(t *testing.T) {
	t.Parallel()
	const path = "testdata/access.log"
	want := sample(1, 300)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what sample makes (%v); go test -update writes it", path, err)
	}
}

// whole is a line of a log, as one expression.
var whole = regexp.MustCompile(`^(\S+) \S+ \S+ \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d+) (\d+|-)(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?(?: ([0-9.]+))?\r?$`)

// naive analyses files in one go, by other means than the program.
func naive(t *testing.T, top int, paths ...string) Result {
	t.Helper()
	var r Result
	statuses, hours, clients, pages := map[string]Sum{}, map[string]Sum{}, map[string]Sum{}, map[string]Sum{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(strings.ToValidUTF8(string(text), "\uFFFD"), "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			m := whole.FindStringSubmatch(line)
			var at time.Time
			var status int
			if m != nil && len(line) <= chunkBytes {
				at, err = time.Parse(logTime, m[2])
				status, _ = strconv.Atoi(m[4])
			}
			if m == nil || len(line) > chunkBytes || err != nil || status > 599 {
				if r.Rejected.Lines++; len(r.Rejected.First) < 10 {
					r.Rejected.First = append(r.Rejected.First, Reject{Name: path, Line: int64(n) + 1})
				}
				continue
			}
			sum := Sum{Requests: 1}
			sum.Bytes, _ = strconv.ParseInt(m[5], 10, 64) // 0 for a dash
			if m[6] != "" {
				seconds, _ := strconv.ParseFloat(m[6], 64)
				sum.Timed, sum.Micros = 1, time.Duration(seconds*1e9+500).Microseconds()
			}
			page := m[3]
			if f := strings.Fields(page); len(f) > 1 {
				page, _, _ = strings.Cut(f[1], "?")
			}
			r.Requests++
			r.Bytes += sum.Bytes
			for key, into := range map[string]map[string]Sum{m[4]: statuses, at.UTC().Format("2006-01-02T15"): hours, m[1]: clients, page: pages} {
				into[key] = into[key].plus(sum)
			}
		}
	}
	r.Statuses, r.Hours = ranked(statuses, byKey), ranked(hours, byKey)
	r.Clients, r.Paths = ranking(clients, top), ranking(pages, top)
	return r
}

func byKey(a, b Row) int      { return strings.Compare(a.Key, b.Key) }
func byRequests(a, b Row) int { return int(b.Requests - a.Requests) }

func ranked(sums map[string]Sum, order func(a, b Row) int) []Row {
	var rows []Row
	for key, sum := range sums {
		rows = append(rows, Row{key, sum})
	}
	slices.SortFunc(rows, byKey)
	slices.SortStableFunc(rows, order)
	return rows
}

func ranking(sums map[string]Sum, top int) Ranking {
	frequent := ranked(sums, byRequests)
	slowest := ranked(sums, func(a, b Row) int { // a fraction, so that nothing is rounded
		return int(b.Micros*max(a.Timed, 1) - a.Micros*max(b.Timed, 1))
	})
	slowest = slices.DeleteFunc(slowest, func(r Row) bool { return r.Timed == 0 })
	return Ranking{len(sums), frequent[:min(top, len(frequent))], slowest[:min(top, len(slowest))]}
}

// write puts a text into a file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
