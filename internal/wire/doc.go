// Package wire asks the engine the questions of the contract (package apportionv1) about a model that package decode has read, and puts
// the answers, warnings and errors into its messages. It contains no decisions.
//
//	s, err := wire.Open(m, policy, wire.Options{})
//	answer := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
//
// Every error is a *decode.Fault.
package wire
