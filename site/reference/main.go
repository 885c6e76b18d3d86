// Command reference writes what the site has of the HTTP API: its reference page and the OpenAPI document, as a server answers
// them.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "reference: give the folder to write to")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, folder string) error {
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	server, err := api.New(api.Config{Store: store})
	if err != nil {
		return err
	}
	defer server.Close()
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for all to read
		return err
	}
	for file, path := range map[string]string{"index.html": "/reference", "openapi.json": "/openapi.json", "openapi.yaml": "/openapi.yaml"} {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, http.NoBody))
		if answer.Code != http.StatusOK {
			return fmt.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
		if err := os.WriteFile(filepath.Join(folder, file), answer.Body.Bytes(), 0o644); err != nil { //nolint:gosec // for all to read
			return err
		}
	}
	return nil
}
