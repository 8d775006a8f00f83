package service

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// chain lists the interceptors, the outermost first: what is measured and logged includes what the inner ones refuse, and a panic is an
// INTERNAL to them like any other.
func (s *Server) chain() []grpc.ServerOption {
	logs := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall),
		logging.WithLevels(func(code codes.Code) logging.Level { return logging.Level(levelOf(code)) }),
		logging.WithFieldsFromContext(func(ctx context.Context) logging.Fields { return logging.Fields{"identity", IdentityOf(ctx)} }),
		logging.WithDurationField(func(d time.Duration) logging.Fields { return logging.Fields{"grpc.duration", d} }),
	}
	logger := logging.LoggerFunc(func(ctx context.Context, level logging.Level, text string, fields ...any) {
		s.log.Log(ctx, slog.Level(level), text, fields...) //nolint:sloglint // The text is one of logging's own.
	})
	audible := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool { return !quiet(call.FullMethod()) })
	recovering := recovery.WithRecoveryHandlerContext(s.recovered)
	unary := []grpc.UnaryServerInterceptor{
		selector.UnaryServerInterceptor(logging.UnaryServerInterceptor(logger, logs...), audible),
		recovery.UnaryServerInterceptor(recovering),
	}
	stream := []grpc.StreamServerInterceptor{
		selector.StreamServerInterceptor(logging.StreamServerInterceptor(logger, logs...), audible),
		recovery.StreamServerInterceptor(recovering),
	}
	s.unary = slices.Concat(unary, s.options.Unary)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.unary...),
		grpc.ChainStreamInterceptor(append(stream, s.options.Stream...)...),
	}
}

// quiet reports whether a method is asked all the time and says nothing of interest: health and reflection.
func quiet(method string) bool { return strings.HasPrefix(method, "/grpc.") }

// levelOf is how loud an end of a call is: what only the server can mend is an error.
func levelOf(code codes.Code) slog.Level {
	switch code {
	case codes.OK, codes.Canceled:
		return slog.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelError
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

func errorAttr(err error) slog.Attr { return slog.String("error", err.Error()) }

// recovered logs and counts a panic, and tells the caller nothing but that there was a fault.
func (s *Server) recovered(ctx context.Context, p any) error {
	s.panics.Inc()
	s.log.LogAttrs(ctx, slog.LevelError, "a call panicked",
		slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	return s.service.fail(context.WithoutCancel(ctx), errPanicked)
}
