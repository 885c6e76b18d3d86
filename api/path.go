package api

import (
	"net/http"
	"path"
	"strings"
)

// PlainPaths answers a request for a path such as //v1/jobs or /v1/../v1/jobs with a redirect to the path that it means, and a problem that
// says so. Put it around a ServeMux that has a Server below it: that would answer with a page of HTML.
func PlainPaths(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !toPlain(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// toPlain redirects a request whose path is not as short as it can be, and tells whether it was one. Clients repeat the same request there.
func toPlain(w http.ResponseWriter, r *http.Request) bool {
	given := r.URL.EscapedPath()
	plain := path.Clean("/" + given)
	if strings.HasSuffix(given, "/") && plain != "/" {
		plain += "/"
	}
	if r.Method == http.MethodConnect || given == plain || given == "" {
		return false
	}
	if r.URL.RawQuery != "" {
		plain += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", plain)
	writeProblem(w, problem(Kind{"no_route", http.StatusTemporaryRedirect, 2}, "there is nothing at %.200s: use %.200s", given, plain))
	return true
}
