package trigger

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// The schemes by which messages of a webhook are signed.
const (
	// GitHub: the header X-Hub-Signature-256 is sha256= and the HMAC-SHA-256 of the body in hexadecimal digits. Nothing tells a
	// message that is sent again from a new one.
	GitHub = "github"
	// Standard is that of https://www.standardwebhooks.com: the header Webhook-Signature has v1, and the HMAC-SHA-256 of Webhook-Id,
	// Webhook-Timestamp and the body in base64, perhaps several with blanks between them.
	Standard = "standard"
)

// Schemes returns all of them.
func Schemes() []string { return []string{GitHub, Standard} }

// Bounds of what is signed.
const (
	DefaultTolerance = 5 * time.Minute  // how far a timestamp may be from now
	MaxTolerance     = 30 * time.Minute // the IDs of messages are known for an hour
)

// Verify says how the messages are signed that are sent to a webhook trigger over HTTP: others are refused. The secret is not
// part of the definition, which can be looked at: see SetSecret.
type Verify struct {
	Scheme string `json:"scheme"` // GitHub or Standard
	// Tolerance is how far the timestamp of a message may be from now, of Standard. Zero means DefaultTolerance.
	Tolerance component.Duration `json:"tolerance,omitempty"`
}

// ErrSignature is wrapped by the errors of Check.
var ErrSignature = errors.New("the signature does not fit")

func (v *Verify) check(kind Kind) error {
	if v == nil {
		return nil
	}
	switch t := time.Duration(v.Tolerance); {
	case kind != Webhook:
		return fmt.Errorf("verify is for messages that are sent to a webhook trigger: this one fires for a %s", kind)
	case v.Scheme != GitHub && v.Scheme != Standard:
		return fmt.Errorf("verify.scheme %.40q: %s", v.Scheme, port.Suggest(v.Scheme, Schemes()))
	case t < 0 || t > MaxTolerance:
		return fmt.Errorf("verify.tolerance %s: use a time up to %s", t, MaxTolerance)
	case t > 0 && v.Scheme == GitHub:
		return errors.New("verify.tolerance is for the scheme standard: github has no timestamps")
	}
	return nil
}

// Check returns an error that wraps ErrSignature unless a message was signed with the secret. header returns a header of the request
// that brought it. The ID names the message, of Standard: one that comes again has the same.
func (v *Verify) Check(secret string, header func(name string) string, body []byte, now time.Time) (id string, err error) {
	if secret == "" {
		return "", fmt.Errorf("%w: the trigger has no secret yet", ErrSignature)
	}
	if v.Scheme == GitHub {
		text, ok := strings.CutPrefix(header("X-Hub-Signature-256"), "sha256=")
		given, err := hex.DecodeString(text)
		if !ok || err != nil || !hmac.Equal(given, sum([]byte(secret), body)) {
			return "", fmt.Errorf("%w: X-Hub-Signature-256 is to be sha256= and the HMAC-SHA-256 of the body in hexadecimal digits", ErrSignature)
		}
		return "", nil
	}
	key, err := job.SecretBytes(secret)
	if err != nil {
		return "", err
	}
	id, stamp := header("Webhook-Id"), header("Webhook-Timestamp")
	want := sum(key, []byte(id+"."+stamp+"."), body)
	good := false
	for _, text := range strings.Fields(header("Webhook-Signature")) {
		text, ok := strings.CutPrefix(text, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		good = ok && err == nil && hmac.Equal(given, want) || good
	}
	if !good || id == "" {
		return "", fmt.Errorf("%w: Webhook-Signature is to have v1, and the HMAC-SHA-256 of Webhook-Id, Webhook-Timestamp and the body, with dots between, in base64", ErrSignature)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	away := now.Sub(time.Unix(seconds, 0)).Abs()
	most := time.Duration(v.Tolerance)
	if most == 0 {
		most = DefaultTolerance
	}
	if err != nil || away > most {
		return "", fmt.Errorf("%w: Webhook-Timestamp %.20q is not within %s of the server's time", ErrSignature, stamp, most)
	}
	return id, nil
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// Secrets is where the secrets of triggers are kept: a store.
type Secrets interface {
	SetSecret(ctx context.Context, id job.ID, secret string) error
}

// SetSecret gives a trigger the secret that its messages are signed with, see Verify. Nothing shows it any more; it goes with the trigger.
func SetSecret(ctx context.Context, in Secrets, h *client.Handle, secret string) error {
	d, err := defined(ctx, h)
	if err != nil {
		return err
	}
	if d.Verify == nil {
		return fmt.Errorf("%w: trigger %s does not verify signatures: give it verify first", job.ErrValue, h.ID())
	}
	if err := job.CheckSecret(secret); err != nil {
		return err
	}
	return in.SetSecret(ctx, h.ID(), secret)
}
