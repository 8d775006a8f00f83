package web

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/gen/apportion/v1/apportionv1connect"
)

type contract = apportionv1.ApportionServiceServer

// EvaluateShares is the call of this name.
func (h *handler) EvaluateShares(
	ctx context.Context, r *apportionv1.EvaluateSharesRequest,
) (*apportionv1.EvaluateSharesResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceEvaluateSharesProcedure, r, contract.EvaluateShares)
}

// CheckEnqueue is the call of this name.
func (h *handler) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceCheckEnqueueProcedure, r, contract.CheckEnqueue)
}

// CheckAllocatable is the call of this name.
func (h *handler) CheckAllocatable(
	ctx context.Context, r *apportionv1.CheckAllocatableRequest,
) (*apportionv1.CheckAllocatableResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceCheckAllocatableProcedure, r, contract.CheckAllocatable)
}

// SelectVictims is the call of this name.
func (h *handler) SelectVictims(ctx context.Context, r *apportionv1.SelectVictimsRequest) (*apportionv1.SelectVictimsResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceSelectVictimsProcedure, r, contract.SelectVictims)
}

// ScoreNodes is the call of this name.
func (h *handler) ScoreNodes(ctx context.Context, r *apportionv1.ScoreNodesRequest) (*apportionv1.ScoreNodesResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceScoreNodesProcedure, r, contract.ScoreNodes)
}

// Explain is the call of this name.
func (h *handler) Explain(ctx context.Context, r *apportionv1.ExplainRequest) (*apportionv1.ExplainResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceExplainProcedure, r, contract.Explain)
}

// Plan is the call of this name.
func (h *handler) Plan(ctx context.Context, r *apportionv1.PlanRequest) (*apportionv1.PlanResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServicePlanProcedure, r, contract.Plan)
}

// Remedies is the call of this name.
func (h *handler) Remedies(ctx context.Context, r *apportionv1.RemediesRequest) (*apportionv1.RemediesResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceRemediesProcedure, r, contract.Remedies)
}

// Simulate is the call of this name.
func (h *handler) Simulate(ctx context.Context, r *apportionv1.SimulateRequest) (*apportionv1.SimulateResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceSimulateProcedure, r, contract.Simulate)
}

// ListSnapshots is the call of this name.
func (h *handler) ListSnapshots(ctx context.Context, r *apportionv1.ListSnapshotsRequest) (*apportionv1.ListSnapshotsResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceListSnapshotsProcedure, r, contract.ListSnapshots)
}

// GetSnapshot is the call of this name.
func (h *handler) GetSnapshot(ctx context.Context, r *apportionv1.GetSnapshotRequest) (*apportionv1.GetSnapshotResponse, error) {
	return call(ctx, h, apportionv1connect.ApportionServiceGetSnapshotProcedure, r, contract.GetSnapshot)
}

// overloaded is the code of calls for which there is no room.
const overloaded = codes.ResourceExhausted

// sent turns a status of gRPC into an error of Connect: the same code, text and details.
func sent(err error) *connect.Error {
	st := status.Convert(err)
	out := connect.NewError(connect.Code(st.Code()), errors.New(st.Message()))
	for _, detail := range st.Proto().GetDetails() {
		if d, err := connect.NewErrorDetail(detail); err == nil {
			out.AddDetail(d)
		}
		var retry errdetails.RetryInfo
		if detail.MessageIs(&retry) && detail.UnmarshalTo(&retry) == nil {
			seconds := math.Ceil(retry.GetRetryDelay().AsDuration().Seconds())
			out.Meta().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
		}
	}
	return out
}

// codeName is a code as gRPC writes it: NOT_FOUND.
func codeName(code connect.Code) string { return strings.ToUpper(code.String()) }
