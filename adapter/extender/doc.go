// Package extender answers stock Volcano through its extender plugin: HTTP with JSON, one URL path for each scheduler, each path bound
// to a named policy. The newest push of a path is its snapshot, the events that follow keep it current, and the same engine decides as
// everywhere else.
//
//	h, err := extender.New(extender.Options{
//		Schedulers: map[string]extender.Scheduler{"/volcano": {Policy: "cluster"}},
//		Policy:     func(name string) *apportionv1.Policy { return policies[name] },
//	})
//	err = extender.NewServer(h, extender.ServerOptions{}).Serve(ctx, listener)
//
// No answer can crash or stall the scheduler. Objects that it sent are echoed byte for byte or left out. A question that cannot be decided
// gets the answer that leaves the decision to Volcano's other plugins, and a metric counts it with the reason.
//
// The protocol is that of Volcano v1.15.1, pkg/scheduler/plugins/extender; docs/volcano.md describes how to configure both sides.
package extender
