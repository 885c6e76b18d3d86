// Package encrypt encrypts what jobs hold, with AES-256-GCM and keys that can be changed
// while jobs run. A Keyring is the Codec of a store:
//
//	keys, err := encrypt.ReadKeys("/etc/weir/keys")
//	…
//	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Codec: keys})
//
// What it makes holds the name of its key, and is bound to its place, as far as it has one:
// see job.Place. So nobody without a key can read it, change it, or put the state of one
// job into another.
package encrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirworks/weir/job"
)

// KeySize is how many bytes a key has.
const KeySize = 32

// Key is a key and the name under which what was encrypted with it knows it.
type Key struct {
	// Name is like that of a type of worker; it is stored with all that is encrypted.
	Name string
	// Secret is KeySize random bytes.
	Secret []byte
}

// What is encrypted is: version, length of the key's name, name, salt, nonce, and what
// AES-GCM makes. All before the nonce, and the place, is authenticated too. From the key and
// the salt comes the key that is really used, for that many values at most: thus random
// nonces do not meet, however much a key is used.
const (
	version   = 1
	saltSize  = 16
	nonceSize = 12
	tagSize   = 16
	maxUses   = 1 << 24
	maxKept   = 1024 // derived keys kept for reading
)

// Keyring encrypts with one key and decrypts with several. It is safe for concurrent use.
type Keyring struct {
	keys    map[string]Key
	writing Key

	mu     sync.Mutex // of making a new sealer
	sealer atomic.Pointer[sealer]

	keptMu sync.Mutex
	kept   map[string]cipher.AEAD // by what stands before the nonce
}

var _ job.Codec = (*Keyring)(nil)

// sealer encrypts under one salt.
type sealer struct {
	head []byte // what stands before the nonce
	aead cipher.AEAD
	uses atomic.Int64
}

// New returns a keyring that encrypts with the first key and decrypts with all of them. The
// error wraps job.ErrConfig and never tells a secret.
func New(writing Key, reading ...Key) (*Keyring, error) {
	k := &Keyring{keys: map[string]Key{}, writing: writing, kept: map[string]cipher.AEAD{}}
	for _, one := range append([]Key{writing}, reading...) {
		if err := job.CheckName("key", one.Name); err != nil {
			return nil, fmt.Errorf("%w: %w", job.ErrConfig, err)
		}
		if len(one.Secret) != KeySize {
			return nil, fmt.Errorf("%w: key %s has %d bytes, it must have %d", job.ErrConfig, one.Name, len(one.Secret), KeySize)
		}
		if _, twice := k.keys[one.Name]; twice {
			return nil, fmt.Errorf("%w: there are two keys %s", job.ErrConfig, one.Name)
		}
		one.Secret = bytes.Clone(one.Secret)
		k.keys[one.Name] = one
	}
	k.writing = k.keys[writing.Name]
	return k, nil
}

// ReadKeys makes a keyring of a file. Each line is the name of a key and, behind blanks, its
// secret in base64, as openssl rand -base64 32 prints it; the first key encrypts. Empty lines
// and those that begin with # do not count. The error wraps job.ErrConfig.
func ReadKeys(path string) (*Keyring, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: reading keys: %w", job.ErrConfig, err)
	}
	var keys []Key
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%w: %s:%d: write the name of a key, a blank and the key", job.ErrConfig, path, n)
		}
		secret, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil {
			return nil, fmt.Errorf("%w: %s:%d: the key is not base64; make one with openssl rand -base64 %d", job.ErrConfig, path, n, KeySize)
		}
		keys = append(keys, Key{words[0], secret})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s has no keys", job.ErrConfig, path)
	}
	k, err := New(keys[0], keys[1:]...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// String tells the names of the keys and no secret.
func (k *Keyring) String() string {
	return fmt.Sprintf("%d keys, writing with %s", len(k.keys), k.writing.Name)
}

// GoString is String: a keyring may be part of what somebody prints.
func (k *Keyring) GoString() string { return k.String() }

// String tells the name of a key and not its secret.
func (k Key) String() string { return k.Name }

// GoString is String.
func (k Key) GoString() string { return k.Name }

// MarshalText is String, for those who print JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.Name), nil }

// derive returns the key for one salt.
func derive(k Key, salt []byte) (cipher.AEAD, error) {
	secret, err := hkdf.Key(sha256.New, k.Secret, salt, "weir", KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// current returns what encrypts now.
func (k *Keyring) current() (*sealer, error) {
	if s := k.sealer.Load(); s != nil && s.uses.Add(1) <= maxUses {
		return s, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sealer.Load(); s != nil && s.uses.Add(1) <= maxUses {
		return s, nil
	}
	head := append([]byte{version, byte(len(k.writing.Name))}, k.writing.Name...)
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	aead, err := derive(k.writing, salt)
	if err != nil {
		return nil, err
	}
	s := &sealer{head: append(head, salt...), aead: aead}
	k.sealer.Store(s)
	return s, nil
}

// Encode implements job.Codec.
func (k *Keyring) Encode(p job.Place, plain []byte) ([]byte, error) {
	s, err := k.current()
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(s.head)+nonceSize, len(s.head)+nonceSize+len(plain)+tagSize)
	copy(out, s.head)
	nonce := out[len(s.head):]
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(out, nonce, plain, append(p.Bytes(), s.head...)), nil
}

// What is wrong with something that is to be decoded.
var (
	errForm    = errors.New("it is no text of this kind of encryption")
	errChanged = errors.New("it was changed, or belongs elsewhere, or its key is another one of that name")
)

// Decode implements job.Codec.
func (k *Keyring) Decode(p job.Place, encoded []byte) ([]byte, error) {
	if len(encoded) < 2 || encoded[0] != version {
		return nil, errForm
	}
	at := 2 + int(encoded[1])
	if len(encoded) < at+saltSize+nonceSize+tagSize {
		return nil, errForm
	}
	name := string(encoded[2:at])
	key, ok := k.keys[name]
	if !ok {
		return nil, fmt.Errorf("it is encrypted with key %.128q, which is not among the keys of this program", name)
	}
	at += saltSize
	head := encoded[:at]
	aead, err := k.reader(key, head)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, encoded[at:at+nonceSize], encoded[at+nonceSize:], append(p.Bytes(), head...))
	if err != nil {
		return nil, errChanged
	}
	return plain, nil
}

// reader returns the key for what begins with head.
func (k *Keyring) reader(key Key, head []byte) (cipher.AEAD, error) {
	k.keptMu.Lock()
	defer k.keptMu.Unlock()
	if aead, ok := k.kept[string(head)]; ok {
		return aead, nil
	}
	aead, err := derive(key, head[len(head)-saltSize:])
	if err != nil {
		return nil, err
	}
	if len(k.kept) >= maxKept {
		clear(k.kept) // salts that somebody made up must not fill the memory
	}
	k.kept[string(head)] = aead
	return aead, nil
}
