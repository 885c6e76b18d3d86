package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/job"
)

const root = job.ID("018f4e2a-0000-7000-8000-000000000001")

func TestParseID(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		string(root): true, string(root) + ".1": true, string(root) + ".4000000": true,
		"": false, "album": false, string(root) + ".": false, string(root) + ".0": false, string(root) + ".01": false,
		string(root) + ".-1": false, string(root) + ".1.1": false, string(root) + ".x": false, string(root) + " ": false,
		strings.ToUpper("018f4e2a-0000-7000-8000-00000000000a"): false, "{" + string(root) + "}": false,
		strings.ReplaceAll(string(root), "-", ""): false, "urn:uuid:" + string(root): false,
	} {
		id, err := job.ParseID(text)
		if ok && (err != nil || string(id) != text) {
			t.Errorf("%q: %q, %v", text, id, err)
		}
		if !ok && !errors.Is(err, job.ErrID) {
			t.Errorf("%q: %q, %v, want ErrID", text, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(string(root))
	f.Add(string(root) + ".12")
	f.Add("018F4E2A-0000-7000-8000-000000000001.00")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := job.ParseID(text)
		if err != nil {
			return
		}
		if string(id) != text || id.Nth(id.Number()) != id || id.IsRoot() != (id.Number() == 0) || id.Tree().Nth(0) != id.Tree() {
			t.Errorf("%q is not made of its parts", text)
		}
	})
}

// All jobs of a tree lie in one shard, and trees spread over all of them.
func TestShard(t *testing.T) {
	t.Parallel()
	used := map[int]int{}
	for range 10_000 {
		id, err := job.NewID()
		if err != nil {
			t.Fatal(err)
		}
		used[id.Shard(64)]++
		if a, b := id.Shard(64), id.Nth(7).Shard(64); a != b {
			t.Fatalf("%s lies in shard %d, its child in %d", id, a, b)
		}
	}
	for shard := range 64 {
		if n := used[shard]; n < 80 || n > 250 {
			t.Errorf("shard %d has %d of 10,000 trees", shard, n)
		}
	}
}

func TestNewIDsAreInOrderAndDiffer(t *testing.T) {
	t.Parallel()
	last := job.ID("")
	for range 10_000 {
		id, err := job.NewID()
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%s comes after %s", id, last)
		}
		last = id
	}
}

func TestHashIsFNV1a(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} {
		if got := job.Hash(text); got != want {
			t.Errorf("Hash(%q) = %#x, want %#x", text, got, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "0", "Resize", "a_b-c.d:e/f", strings.Repeat("x", job.MaxName)} {
		if err := job.CheckName("type", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", " ", "-a", ".", "a b", "ä", "a\n", "a\x00", strings.Repeat("x", job.MaxName+1)} {
		err := job.CheckName("queue", bad)
		if !errors.Is(err, job.ErrName) || !strings.Contains(err.Error(), "queue") || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func TestNthProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1_000_000).Draw(t, "n")
		id := root.Nth(n)
		if again, err := job.ParseID(string(id)); err != nil || again.Number() != n || again.Tree() != root {
			t.Fatalf("%s: %v", id, err)
		}
	})
}

func ExampleID() {
	id := job.ID("018f4e2a-0000-7000-8000-000000000001.3")
	fmt.Println(id.Tree(), id.Number(), id.IsRoot())
	// Output: 018f4e2a-0000-7000-8000-000000000001 3 false
}
