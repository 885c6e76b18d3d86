// Package client creates trees of jobs, finds jobs, and acts on them from outside of their runs.
//
// A Client creates and finds; a Handle is one job. Both are safe for concurrent use. All other ways to Weir, such as the HTTP API,
// the command and the page, are made of them.
package client
