package component

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Accepts returns an error if jobs of a registered type are a component that would refuse these parameters in its first run.
// A type that is no component, or has other parameters than the one of its name, accepts all that fit their declaration.
func Accepts(typ *job.TypeInfo, args json.RawMessage) error {
	for _, c := range Components(Policy{}) {
		if name, err := job.TypeOf(c); err != nil || name != typ.Type {
			continue
		}
		layout, err := port.Describe(reflect.TypeOf(c))
		if err != nil {
			return err
		}
		if !slices.EqualFunc(typ.Params, layout.ParamSpecs(), func(a, b port.Param) bool { return a.Name == b.Name && a.Kind == b.Kind }) || len(args) > 0 && port.CheckParams(typ.Params, args) != nil {
			return nil // the second the store says better
		}
		if err := layout.SetParams(c, args); err != nil {
			return err
		}
		return c.Validate()
	}
	return nil
}
