// Package runner runs handlers: it keeps processes warm that have the code of a type, gives them payloads in batches, and makes of what they say
// what runs of jobs commit. Its processes live in a sandbox, as far as the machine has one.
package runner
