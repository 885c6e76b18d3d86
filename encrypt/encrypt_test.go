package encrypt_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirworks/weir/encrypt"
	"github.com/weirworks/weir/job"
)

// key is one whose secret is made of one letter.
func key(name, letter string) encrypt.Key {
	return encrypt.Key{Name: name, Secret: bytes.Repeat([]byte(letter), encrypt.KeySize)}
}

func ring(t testing.TB, writing encrypt.Key, reading ...encrypt.Key) *encrypt.Keyring {
	t.Helper()
	k, err := encrypt.New(writing, reading...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var place = job.Place{Namespace: "main", Kind: job.KindState, Job: "01a1ffcd-8328-72a1-a3d0-059accb38402.3", Key: "cursor"}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	k := ring(t, key("a", "1"))
	for _, plain := range []string{"", "1", `{"name":"ann"}`, strings.Repeat("x", 1<<20), "\x00\x1f\n\x02"} {
		first, err := k.Encode(place, []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		second, err := k.Encode(place, []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(first, second) {
			t.Error("the same text gives the same twice")
		}
		if len(plain) > 10 && bytes.Contains(first, []byte(plain[:10])) {
			t.Errorf("%.20q is in what is stored", plain)
		}
		other := ring(t, key("a", "1")) // another process
		if got, err := other.Decode(place, first); err != nil || string(got) != plain {
			t.Errorf("%.20q came back as %.20q, %v", plain, got, err)
		}
	}
}

// What is put somewhere else, changed by a bit, or cut off, is refused.
func TestTampered(t *testing.T) {
	t.Parallel()
	k := ring(t, key("a", "1"))
	good, err := k.Encode(place, []byte(`"secret"`))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []job.Place{
		{},
		{Namespace: "other", Kind: place.Kind, Job: place.Job, Key: place.Key},
		{Namespace: place.Namespace, Kind: job.KindArgs, Job: place.Job, Key: place.Key},
		{Namespace: place.Namespace, Kind: place.Kind, Job: place.Job[:36], Key: place.Key},
		{Namespace: place.Namespace, Kind: place.Kind, Job: place.Job, Key: "cursor2"},
		{Namespace: place.Namespace + `" "state`, Kind: "", Job: place.Job, Key: place.Key},
	} {
		if got, err := k.Decode(p, good); err == nil {
			t.Errorf("in place %+v it is %q", p, got)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if got, err := k.Decode(place, bad); err == nil {
			t.Errorf("with byte %d changed it is %q", i, got)
		}
		if got, err := k.Decode(place, good[:i]); err == nil {
			t.Errorf("cut off at byte %d it is %q", i, got)
		}
	}
	if _, err := k.Decode(place, append(bytes.Clone(good), 0)); err == nil {
		t.Error("with a byte more it is believed")
	}
	if _, err := ring(t, key("a", "2")).Decode(place, good); err == nil {
		t.Error("another key of that name opens it")
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	old := ring(t, key("old", "1"))
	both := ring(t, key("new", "2"), key("old", "1"))
	stored, err := old.Encode(place, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Decode(place, stored); err != nil || string(got) != "1" {
		t.Errorf("%q, %v", got, err)
	}
	if stored, err = both.Encode(place, []byte("2")); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Decode(place, stored); err == nil || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("the error of a missing key: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for want, keys := range map[string][]encrypt.Key{
		"key is empty":            {key("", "1")},
		"key":                     {key("a b", "1")},
		"has 3 bytes":             {{Name: "a", Secret: []byte("abc")}},
		"key b has 0 bytes":       {key("a", "1"), {Name: "b"}},
		"two keys a":              {key("a", "1"), key("a", "2")},
		"at most 128 are allowed": {key(strings.Repeat("a", 129), "1")},
	} {
		if _, err := encrypt.New(keys[0], keys[1:]...); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", keys, err, want)
		}
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	secret := func(letter string) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(letter), encrypt.KeySize))
	}
	file := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# keys of the shop\n\n2026-11 " + secret("2") + "\r\n  2025-11\t" + secret("1"))
	k, err := encrypt.ReadKeys(file)
	if err != nil || k.String() != "2 keys, writing with 2026-11" {
		t.Fatalf("%v, %v", k, err)
	}
	stored, err := ring(t, key("2025-11", "1")).Encode(place, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Decode(place, stored); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"":              "has no keys",
		"# nothing":     "has no keys",
		"a":             ":1: write the name",
		"\na hush hush": ":2: write the name",
		"a hush?":       ":1: the key is not base64",
		"a aHVzaA==":    "key a has 4 bytes",
		"a " + secret("1") + "\na " + secret("2"): "two keys a",
		"a$b " + secret("1"):                      "key",
	} {
		write(text)
		_, err := encrypt.ReadKeys(file)
		if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		for _, word := range []string{"hush", "aHVzaA", secret("1"), secret("2")} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%q: the error tells a secret: %v", text, err)
			}
		}
	}
	if _, err := encrypt.ReadKeys(file + "x"); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, job.ErrConfig) {
		t.Error(err)
	}
}

// However a key or a keyring is printed, its secret is not.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	k := encrypt.Key{Name: "name-of-it", Secret: []byte("hushhushhushhushhushhushhushhush")}
	r := ring(t, k)
	var out bytes.Buffer
	for _, v := range []any{k, &k, r, []encrypt.Key{k}, struct{ Codec job.Codec }{r}} {
		fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		raw, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(raw)
	}
	for _, secret := range []string{"hush", "104 117 115 104", "0x68, 0x75", base64.StdEncoding.EncodeToString(k.Secret)[:16], "6875"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is in what is printed: %s", secret, out.String())
		}
	}
	if !strings.Contains(out.String(), k.Name) {
		t.Error("the name of the key is not in what is printed")
	}
}

func FuzzDecode(f *testing.F) {
	k := ring(f, key("a", "1"))
	good, err := k.Encode(place, []byte("1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{1, 255})
	f.Fuzz(func(t *testing.T, stored []byte) {
		if plain, err := k.Decode(place, stored); err == nil && string(plain) != "1" {
			t.Errorf("%x is taken for %q", stored, plain)
		}
	})
}
