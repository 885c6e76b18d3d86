package job

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Bounds of the secrets of webhooks, in bytes.
const (
	MinSecret = 16
	MaxSecret = 512
)

// webhookSecret begins a secret that goes on in base64, as https://www.standardwebhooks.com has it.
const webhookSecret = "whsec_"

// SecretBytes are those that a secret stands for.
func SecretBytes(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, webhookSecret)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: the secret begins with %s, and does not go on in base64", ErrValue, webhookSecret)
	}
	return key, nil
}

// CheckSecret reports what is wrong with a secret, without telling it.
func CheckSecret(secret string) error {
	key, err := SecretBytes(secret)
	if err != nil {
		return err
	}
	if len(key) < MinSecret || len(secret) > MaxSecret {
		return fmt.Errorf("%w: the secret has %d bytes: use %d to %d", ErrValue, len(key), MinSecret, MaxSecret)
	}
	return nil
}
