package job

import (
	"crypto/rand"
)

// ownerLen is how many characters of an engine's ID are the beginning of its runs' tokens.
const ownerLen = 8

// RunToken returns a random token for a run of an engine, which begins as the ID of the engine does: so whoever looks at a job can be told
// which engine has it, and nothing of the token that could end the run.
func RunToken(engine string) string {
	owner := engine[:min(ownerLen, len(engine))]
	return owner + rand.Text()[len(owner):]
}

// Owner is the beginning of the ID of the engine that runs the job, or has it leased to a client, while a run is in progress.
func (i *Info) Owner() string { return i.Token[:min(ownerLen, len(i.Token))] }
