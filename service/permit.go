package service

import "context"

// permit returns an error if the caller may not name the cluster that a snapshot names. It is asked before the snapshot is compiled, and
// when one that is held is used again.
func (s *Service) permit(ctx context.Context, cluster func() string) error {
	if s.options.Permit == nil {
		return nil
	}
	return s.options.Permit(ctx, cluster())
}
