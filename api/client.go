package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// reservedClients are the first parts of paths that lead elsewhere: routes of the API, and what a server has beside it, its probes, its metrics and
// its page. A client of such a name would be made by a slip, as by /v1/job/mail/add.
var reservedClients = []string{
	"v1", "jobs", "bedrock", "reference", "openapi", "openapi.json", "openapi.yaml", "openapi-3.0.json", "openapi-3.0.yaml",
	"healthz", "readyz", "metrics", "page.json", "index.html", "icon.svg", "favicon.ico", "assets",
}

// ClientType returns the worker type that a client of the routes /{client}/… means by a name. With tokens the client must be the namespace
// of the token, which has the type under that name; another client is refused with 403. Without tokens each client is a tenant of its
// own, and the type is stored as {client}-{name}: so a client's name has no "-", or two clients could mean one type. Names that other routes begin
// with are reserved.
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
	if slices.ContainsFunc(reservedClients, func(r string) bool { return strings.EqualFold(r, client) }) {
		return "", wrong("client %q is reserved, as paths of other routes begin with /%s: use another name; GET /reference lists the operations", client, strings.ToLower(client))
	}
	full := client + "-" + name
	return full, job.CheckName("type", full)
}
