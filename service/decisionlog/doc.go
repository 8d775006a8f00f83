// Package decisionlog logs decisions: the caller, the question, the policy, the snapshot and the answer; and replays them. Calls never wait
// for it longer than its options permit, and its memory is limited by its options.
//
//	log, err := decisionlog.New(decisionlog.Options{Sink: sink})
//	s, err := service.New(service.Options{Observers: []service.Observer{log}})
//	defer log.Close(ctx)
package decisionlog
