package variation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// maintenance sets the planned downtime of a node in place of what it has. The reservations for jobs, and of parts of the node, stay.
func (s *setting) maintenance(n *apportionv1.Node) error {
	var downtime, others []*apportionv1.NodeReservation
	for _, r := range n.GetReservations() {
		if r.GetHolder() == "" && r.GetRequest() == nil {
			downtime = append(downtime, r)
		} else {
			others = append(others, r)
		}
	}
	s.before, s.after = writtenPeriods(downtime), none
	if s.value == "" || s.value == none {
		if len(downtime) == 0 {
			return errors.New("no downtime of the node is planned")
		}
		n.Reservations = others
		return nil
	}
	periods, err := s.edit.periods(s.value)
	if err != nil {
		return err
	}
	if n := len(others) + len(periods); n > model.MaxReservations {
		return fmt.Errorf("%s of the node, with those for jobs and of parts of it, are more than %d",
			text.Count(n, "reservation"), model.MaxReservations)
	}
	s.after = writtenPeriods(periods)
	n.Reservations = slices.Concat(others, periods)
	if s.edit.snapshot.GetAsOf() == 0 {
		s.edit.change.AsOf = new(s.edit.at)
	}
	return nil
}

// periods reads periods that are separated by commas. The error names each that is wrong, or is over.
func (e *edit) periods(list string) ([]*apportionv1.NodeReservation, error) {
	var periods []*apportionv1.NodeReservation
	var faults []string
	for period := range strings.SplitSeq(list, ",") {
		one, err := volcano.Downtime(period)
		if err == nil && one.GetEndUnixNano() <= e.at {
			err = fmt.Errorf("the period is over at %s, the time of the question", time.Unix(0, e.at).UTC().Format(time.RFC3339))
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%q: %s", strings.TrimSpace(period), err))
			continue
		}
		periods = append(periods, one)
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return periods, nil
}

func writtenPeriods(list []*apportionv1.NodeReservation) string {
	if len(list) == 0 {
		return none
	}
	written := make([]string, len(list))
	for i := range list {
		written[i] = volcano.WriteDowntime(list[i])
	}
	return strings.Join(written, ",")
}
