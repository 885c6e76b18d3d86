// Package docs holds the documents that the weir command carries.
package docs

import _ "embed"

//go:embed cli.schema.json
var cliSchema []byte

// CLISchema is a JSON Schema of what weir prints with -o json: $defs has an entry for each
// command and for what they share.
func CLISchema() []byte { return cliSchema }
