package workkit

import "time"

// Impatient has the listener wait a second only for the entries of members.
func (l *Listener) Impatient() {
	for _, s := range l.schedules {
		s.patience = time.Second
	}
}
