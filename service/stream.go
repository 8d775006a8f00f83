package service

import (
	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// UploadSnapshot takes a snapshot to be named by digest afterwards.
func (s *Service) UploadSnapshot(
	stream grpc.ClientStreamingServer[apportionv1.UploadSnapshotRequest, apportionv1.UploadSnapshotResponse],
) error {
	return s.fail(stream.Context(), unimplemented("UploadSnapshot"))
}

// RunSession holds a conversation about one snapshot.
func (s *Service) RunSession(stream grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]) error {
	return s.fail(stream.Context(), unimplemented("RunSession"))
}
