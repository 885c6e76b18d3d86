package trigger_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/trigger"
)

// A definition is checked before a trigger is made of it.
func ExampleDefinition_Validate() {
	d := trigger.Definition{
		Schedule: "natural:every weekday at 9am",
		Zone:     "Europe/Berlin",
		Launch:   &trigger.Launch{Type: "report", Args: json.RawMessage(`{"kind":"daily"}`), Retain: "7d"},
		Limits:   trigger.Limits{Parallel: 1, Overflow: trigger.Drop},
	}
	fmt.Println(d.Kind(), d.Validate(time.Now()))
	d.Limits = trigger.Limits{Throttle: component.Duration(time.Second), Debounce: component.Duration(time.Second)}
	fmt.Println(d.Validate(time.Now()))
	// Output:
	// schedule <nil>
	// configuration of trigger: throttle and debounce: use one of them
}
