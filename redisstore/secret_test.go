package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/redisstore"
)

// Neither a printed Config nor an error of Open tells a password.
func TestPasswordsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush"
	for _, url := range []string{
		"redis://weir:" + secret + "@127.0.0.1:1/3",
		"redis://:" + secret + "@127.0.0.1:1",
		"rediss://weir:" + secret + "@127.0.0.1:1?tls_ca_file=/nowhere",
		"redis+sentinel://weir:" + secret + "@127.0.0.1:1/main?sentinel_password=" + secret,
		"redis+cluster://weir:" + secret + "@127.0.0.1:1",
		"redis://weir:" + secret + "@127.0.0.1:1?no=" + secret,
		"redis://weir:" + secret + "@127.0.0.1:port",
		"redid://weir:" + secret + "@127.0.0.1",
		"redis://weir:" + secret + "%@127.0.0.1",
		"weir:" + secret + "@127.0.0.1",
	} {
		cfg := redisstore.Config{URL: url, Namespace: "shop"}
		var out bytes.Buffer
		fmt.Fprintf(&out, "%v %+v %#v %s", cfg, cfg, cfg, cfg)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "cfg", cfg)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "cfg", cfg)
		if !strings.Contains(out.String(), "namespace shop") {
			t.Errorf("%s: not even the namespace is printed: %s", url, out.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := redisstore.Open(ctx, cfg)
		if cancel(); err == nil {
			t.Errorf("%s was opened", url)
		}
		fmt.Fprintf(&out, "%v %+v", err, err)
		if strings.Contains(out.String(), secret) {
			t.Errorf("the password is told: %s", out.String())
		}
	}
}
