package service

import (
	"context"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// begin counts a call whose headers have come, until end is called, or refuses it: while others of its identity wait for long, and while
// too many have begun. Sessions last, so that they are counted on their own, and reflection is no work.
func (s *Server) begin(ctx context.Context, method string) (end func(), err error) {
	if method == apportionv1.ApportionService_RunSession_FullMethodName || quiet(method) {
		return func() {}, nil
	}
	identity := IdentityOf(ctx)
	if s.gate.saturated(identity) {
		return nil, s.gate.busy("overload.wait", "others wait for long already")
	}
	mine, all := s.begun.add(identity, 1), s.begun.all.Add(1)
	end = func() {
		s.begun.add(identity, -1)
		s.begun.all.Add(-1)
	}
	maximum := s.options.Overload.Calls
	// The last half is left to those who have less than a half.
	if int(all) > maximum || int(all) > maximum/2 && mine > maximum/2 && s.begun.others(identity) {
		end()
		return nil, s.gate.busy("overload.calls", "too many calls have begun")
	}
	return end, nil
}

// admit waits until work of about that many bytes may begin for a caller.
func (s *Server) admit(ctx context.Context, r rank, bytes int64) (leave func(), err error) {
	leave, err = s.gate.enter(ctx, IdentityOf(ctx), r, bytes)
	if fault := wire.AsFault(err); err != nil && fault.Retry > 0 {
		s.metrics.shed.WithLabelValues(rankNames[r]).Inc()
	}
	return leave, err
}

var rankNames = [ranks]string{"decision", "simulation"}

// questionMemory is what the messages of a question take for each of its bytes, and an answer of its size.
const questionMemory = 16
