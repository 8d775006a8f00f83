// Package wire translates between the contract (package apportionv1) and the engine: snapshots, policies and steps in, answers, warnings
// and errors out. It contains no decisions.
//
//	m, err := wire.Compile(snapshot)
//	s, err := wire.Open(m, policy, wire.Options{})
//	answer := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
//
// Every error is a *Fault, which Status converts to a google.rpc.Status.
package wire
