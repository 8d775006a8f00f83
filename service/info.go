package service

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// GetServerInfo returns what the server is.
func (c *call) GetServerInfo(context.Context, *apportionv1.GetServerInfoRequest) (*apportionv1.GetServerInfoResponse, error) {
	s := c.server
	out := &apportionv1.GetServerInfoResponse{
		EngineVersion: engine.Version, Releases: catalogue.Releases(), Limits: s.limits(), Services: s.services,
	}
	rules := *s.rules.Load()
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		r := rules[name]
		out.Policies = append(out.Policies, &apportionv1.ServedPolicy{Name: name, Digest: r.digest, Source: r.source})
	}
	return out, nil
}

// limits returns the limits that a caller meets, by the names that errors have for them.
func (s *Server) limits() []*apportionv1.CallerLimit {
	o := &s.options
	var list []*apportionv1.CallerLimit
	for prefix, section := range map[string]any{"": o.Limit, "overload.": o.Overload, "deadline.": o.Deadline} {
		for field, value := range reflect.ValueOf(section).Fields() {
			maximum := value.Int()
			if maximum == 0 {
				continue // It follows from the machine.
			}
			if field.Type == reflect.TypeFor[time.Duration]() {
				maximum = time.Duration(maximum).Milliseconds()
			}
			limit := &apportionv1.CallerLimit{Name: prefix + field.Tag.Get("yaml")}
			if value.Int() > 0 {
				limit.Maximum = &maximum
			}
			list = append(list, limit)
		}
	}
	slices.SortFunc(list, func(a, b *apportionv1.CallerLimit) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list
}
