// Package httpstore lets Go programs work with jobs through the HTTP API of weir serve, without reaching its Redis: a [Store] is
// what client.New takes, so that all of package client works as it does beside Redis. Who may do what is decided by the
// token: its role, and its tenant, which is the namespace.
//
//	store, err := httpstore.Open(ctx, httpstore.Config{URL: "https://weir.example.com:8443", Token: os.Getenv("WEIR_TOKEN")})
//	c := client.New(store)
//	handle, err := client.Find(ctx, "album-2026")
//
// Errors wrap the same ones as those of package redisstore; job.ErrUnreachable says that the server does not
// answer, job.ErrForbidden that the token does not permit it.
// Engines run beside Redis: workers that are not, in any language, use POST /v1/runs/lease of the API.
//
// Client and server are to be of one version of Weir. Programs of other languages, or that outlive versions, use the
// operations of the OpenAPI document.
package httpstore
