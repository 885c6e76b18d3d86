package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/weirworks/weir/web"
)

// A program of its own shows the page below a prefix, and lets nobody act there.
func ExampleHandler() {
	server := http.NotFoundHandler() // in a program: api.New(api.Config{Store: store})
	mux := http.NewServeMux()
	mux.Handle("/ops/", http.StripPrefix("/ops", web.Handler(web.Config{API: server, ReadOnly: true})))

	s := httptest.NewServer(mux)
	defer s.Close()
	answer, err := http.Get(s.URL + "/ops/page.json") //nolint:noctx // an example
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	fmt.Print(string(text))
	// Output: {"read_only":true}
}
