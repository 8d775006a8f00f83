// Package engine decides: who deserves what, who may enter, allocate, reclaim and preempt, and why. It takes values and returns values;
// it knows no wire format, clock, log or goroutine, and equal input gives equal answers to the last bit.
//
// A snapshot is compiled once into a model (package model). Open combines a model with a Policy into a Session, which answers
// questions, follows events, and undoes what-ifs exactly:
//
//	b := model.NewBuilder(asOf)
//	b.Dimensions([]string{"cpu", "memory"})
//	b.Queue(model.QueueSpec{Name: "research", Weight: 2})
//	…
//	m, err := b.Build()
//	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: proportion.Plugin{}}}}}, nil)
//	share, ok := s.Shares()[0].Share(queue)
//
// A Session is for one goroutine at a time; a model may be shared by any number of sessions.
package engine

// Version names the semantics of this engine. Equal version, snapshot and policy: equal answers.
const Version = "0.1.0"
