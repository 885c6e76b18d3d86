//go:build !unix

package bedrock

import "net"

// gone tells whether what was written to a connection cannot have reached its client: here that is not known.
func gone(net.Conn) bool { return false }
