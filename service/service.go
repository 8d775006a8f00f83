package service

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Options of a Service; the zero value is usable.
type Options struct {
	// Policies that requests may name.
	Policies map[string]*apportionv1.Policy
	// AnswerBytes bounds one answer. 0: wire.DefaultAnswerBytes.
	AnswerBytes int
	// CallTime bounds a unary call, whatever deadline its caller sets. 0: a minute; below 0: nothing.
	CallTime time.Duration
	// Logger of faults of the service itself. nil: they are not logged.
	Logger *slog.Logger
}

const defaultCallTime = time.Minute

// Service answers the calls of the contract. It is for any number of goroutines.
type Service struct {
	apportionv1.UnimplementedApportionServiceServer

	options Options
	log     *slog.Logger
}

// New returns a service, or what is wrong with the named policies.
func New(options Options) (*Service, error) {
	s := &Service{options: options, log: options.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.options.CallTime == 0 {
		s.options.CallTime = defaultCallTime
	}
	s.options.Policies = maps.Clone(options.Policies)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(options.Policies)) {
		if _, err := wire.Policy(options.Policies[name]); err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}
