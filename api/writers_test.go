package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

// What is known of a job to which somebody has written does not outlive it, and says nothing of ports that it does not have.
func TestWritersOfJobsThatAreGone(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var made struct{ ID string }
	s.ask("POST", "/v1/jobs", map[string]any{"type": "delay", "args": map[string]any{"by": "1h"}}).is(http.StatusCreated, &made)
	write := "/v1/jobs/" + made.ID + "/ports/in/in/messages"
	some := map[string]any{"messages": []string{"a"}}
	for range 2 {
		s.ask("POST", write, some).is(http.StatusOK, nil)
	}
	s.ask("POST", "/v1/jobs/"+made.ID+"/ports/in/inn/messages", some).refuses(http.StatusUnprocessableEntity, "usage", "inn")
	s.ask("POST", "/v1/jobs/"+made.ID+"/terminate", nil)
	s.ask("GET", "/v1/jobs/"+made.ID+"/wait?for=terminated&timeout=20s", nil).is(http.StatusOK, nil)
	s.ask("DELETE", "/v1/jobs/"+made.ID, nil).is(http.StatusNoContent, nil)
	s.ask("POST", write, some).refuses(http.StatusNotFound, "not_found", made.ID)
}
