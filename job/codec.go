package job

import "fmt"

// Codec changes what jobs hold before it is sent to the store, and changes it back when it
// was read: to encrypt it, for instance. It is called by many goroutines at a time.
//
// All that goes through it comes back byte for byte. What was stored without a codec, and
// what the store itself writes, is read as it is.
type Codec interface {
	// Encode returns what is to be stored.
	Encode(p Place, plain []byte) ([]byte, error)
	// Decode undoes Encode. It refuses what was not made by it for this place.
	Decode(p Place, encoded []byte) ([]byte, error)
}

// Kind says what a Codec is given.
type Kind string

// The kinds. Messages and defaults move along wires without being decoded, and the reason of
// a failed job becomes that of its graph, so their places name no job.
const (
	KindMessage Kind = "message" // with its context
	KindDefault Kind = "default"
	KindReason  Kind = "reason"
	KindArgs    Kind = "args"
	KindMemo    Kind = "memo"
	KindState   Kind = "state"
	KindError   Kind = "error"
	KindLog     Kind = "log"
	KindSecret  Kind = "secret" // of a webhook trigger
	// KindProgress is the text of how far a job is.
	KindProgress Kind = "progress"
)

// Place says where something that a Codec is given belongs.
type Place struct {
	Namespace string
	Kind      Kind
	Job       ID     // empty for what moves from job to job
	Key       string // of state
}

// Bytes are different for different places.
func (p Place) Bytes() []byte {
	return fmt.Appendf(nil, "%q %q %q %q", p.Namespace, p.Kind, p.Job, p.Key)
}
