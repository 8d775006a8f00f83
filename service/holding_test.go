package service_test

import (
	"context"

	"github.com/apportion/apportion/service"
)

// holding is an observer that keeps a simulation and everything that it has booked until it is released.
type holding struct{ held, release chan struct{} }

func (holding) Wants(_ context.Context, method, _ string) bool { return method == "Simulate" }

func (h holding) Observe(context.Context, *service.Decision) {
	h.held <- struct{}{}
	<-h.release
}
