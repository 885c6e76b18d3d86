// Package handler describes handlers: code for jobs of a type that no program links, in a script, a command or behind a URL. They are stored
// by type, with versions; package handler/runner runs them. It is pure: no clock, no goroutine, no process.
package handler
