package redisstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/redisstore"
)

// Three jobs in a row in a graph, of which the first runs.
var recordDefined = strings.Join([]string{
	"type\x1fG\x1fqueue\x1fq\x1fgraph\x1f1\x1fo.out\x1f0\x1fn.o.out\x1f1\x1fstatus\x1fsuspended",
	"type\x1fT\x1fqueue\x1fq\x1fname\x1fa\x1fi.in\x1f0\x1fo.out\x1f0 2i.in",
	"type\x1fT\x1fqueue\x1fq\x1fname\x1fb\x1fi.in\x1f0\x1fn.i.in\x1f1\x1fo.out\x1f0 3i.in\x1fstatus\x1fsuspended",
	"type\x1fT\x1fqueue\x1fother\x1fname\x1fc\x1fi.in\x1f0\x1fn.i.in\x1f1\x1fo.out\x1f0 0o.out\x1fstatus\x1fsuspended",
}, "\x1e")

const recordStored = "DIGEST 100 created 5000\x1eby\x1fme\x1erunning 1 100 token 200 3\x1e1\x1fargs\x1f{\"a\":1}\x1e2\x1fmemo\x1f7"

func TestReadRecord(t *testing.T) {
	t.Parallel()
	fields, row, ok := redisstore.ReadRecord("r", recordStored, recordDefined)
	if !ok || len(fields) != 4 {
		t.Fatalf("read as %q, %t", fields, ok)
	}
	if want := []int{2}; !slices.Equal(row, want) { // the last one is of another queue
		t.Errorf("in the row are %v, want %v", row, want)
	}
	for n, want := range []string{
		"\x1fcreated\x1f100\x1fparent\x1f\x1fby\x1fme\x1fretain\x1f5000",
		"\x1fcreated\x1f100\x1fparent\x1fr\x1fby\x1fme\x1fqueued\x1f100\x1fagain\x1f0\x1fstatus\x1frunning\x1ftoken\x1ftoken\x1fran\x1f200\x1fround\x1f3\x1fargs\x1f{\"a\":1}",
		"\x1fcreated\x1f100\x1fparent\x1fr\x1fby\x1fme\x1fmemo\x1f7",
		"\x1fcreated\x1f100\x1fparent\x1fr\x1fby\x1fme",
	} {
		if of := strings.Split(recordDefined, "\x1e")[n]; fields[n] != of+want {
			t.Errorf("job %d is %q, want %q", n, strings.TrimPrefix(fields[n], of), want)
		}
	}
	for _, text := range []string{"", "over", "DIGEST 1 t -\x1e\x1esuspended", "DIGEST 1 t -\x1e\x1erunning x 1 t 2 3", "DIGEST 1 t -\x1e\x1erunning 9 1 t 2 3", "DIGEST 1 t -\x1e\x1erunning -1 1 t 2 3"} {
		if fields, _, ok := redisstore.ReadRecord("r", text, recordDefined); ok {
			t.Errorf("%q is read as a record: %q", text, fields)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(recordStored, recordDefined)
	f.Add("D 1 t -\x1e\x1erunning 0 1 t 2 ", "type\x1fT\x1fi.in\x1f0")
	f.Add("", "\x1e\x1f\x1e")
	f.Fuzz(func(t *testing.T, text, defined string) {
		fields, row, ok := redisstore.ReadRecord("r", text, defined)
		if !ok {
			return
		}
		for n, one := range fields {
			if strings.Contains(one, "\x1e") {
				t.Errorf("job %d is %q", n, one)
			}
		}
		for _, n := range row {
			if n < 0 || n >= len(fields) {
				t.Errorf("job %d of %d is in the row", n, len(fields))
			}
		}
	})
}
