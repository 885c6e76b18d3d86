package statemachine_test

import (
	"fmt"

	"github.com/weirworks/weir/statemachine"
)

func ExampleNext() {
	status, err := statemachine.Next(statemachine.Running, statemachine.Suspend)
	fmt.Println(status, err)

	status, err = statemachine.Next(statemachine.Completed, statemachine.Begin)
	fmt.Println(status, err)
	// Output:
	// suspended <nil>
	// completed a completed job does not accept the event begin; it accepts wake, run, force, terminate
}

func ExampleParseStatus() {
	status, err := statemachine.ParseStatus("queued")
	fmt.Println(status, err)

	_, err = statemachine.ParseStatus("done")
	fmt.Println(err)
	// Output:
	// queued <nil>
	// unknown status "done": want one of queued, scheduled, waiting, running, suspended, completed, failed, terminating, terminated
}
