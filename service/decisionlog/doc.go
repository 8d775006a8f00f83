// Package decisionlog writes down what was decided: who asked what, by which policy, about which snapshot, and what the answer was; and
// decides again what was written down. Calls never wait for it longer than its options say, and it never takes more memory.
//
//	log, err := decisionlog.New(decisionlog.Options{Sink: sink})
//	s, err := service.New(service.Options{Observers: []service.Observer{log}})
//	defer log.Close(ctx)
package decisionlog
