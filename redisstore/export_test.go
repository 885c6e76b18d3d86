package redisstore

import "testing"

// NeededCommands are those that Examine asks about.
var NeededCommands = append(append([]string{}, reading...), writing...)

// EncryptionOf is what Examine says of a URL's encryption.
func EncryptionOf(t testing.TB, url string) Finding {
	t.Helper()
	target, err := parseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	e := &examiner{Store: &Store{target: target}, check: "encryption"}
	e.encryption()
	return e.findings[0]
}
