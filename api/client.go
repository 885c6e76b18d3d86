package api

import (
	"net/http"
	"strings"

	"github.com/weirworks/weir/job"
)

// ClientType returns the worker type that a client of the routes /{client}/… means by a name. With tokens the client must be the namespace
// of the token, which has the type under that name; another client is refused with 403. Without tokens each client is a tenant of its
// own, and the type is stored as {client}-{name}: so a client's name has no "-", or two clients could mean one type.
func ClientType(tokens bool, tenant, client, name string) (string, error) {
	if err := job.CheckName("type", name); err != nil {
		return "", err
	}
	if tokens {
		if client != tenant {
			return "", problem(Kind{"forbidden", http.StatusForbidden, 8}, "the token is for namespace %s, and the path names client %.80q: use /%s/…", tenant, client, tenant)
		}
		return name, nil
	}
	if err := job.CheckName("client", client); err != nil {
		return "", err
	}
	if strings.ContainsAny(client, "-/:") {
		return "", wrong("client %.80q: use letters, digits, _ and . only: its types are stored as {client}-{type}, and another client's must not look the same", client)
	}
	full := client + "-" + name
	return full, job.CheckName("type", full)
}
