package rig

import (
	"context"
	"errors"
)

func (r *rig) forgiven([]sending, int, []int) bool { return false }

func (r *rig) outages(ctx context.Context, _ func() error) error { return errors.New("todo") }
func (r *rig) failovers(ctx context.Context) error { return errors.New("todo") }
func (r *rig) loseTail() error { return nil }
