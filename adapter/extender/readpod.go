package extender

import (
	"github.com/go-faster/jx"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine/model"
)

// podRecord holds the parts of a Pod that Volcano does not copy into the TaskInfo.
type podRecord struct {
	created, scheduled      int64
	labelled, annotated     string
	hasLabel, hasAnnotation bool
	class, gate, phase      string
	gates                   int
	isScheduled             bool
}

func (r *podRecord) read(d *jx.Decoder) error {
	return object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case metadataField:
			return object(d, r.metadata)
		case specField:
			return object(d, r.spec)
		case stateField:
			return object(d, r.status)
		}
		return d.Skip()
	})
}

func (r *podRecord) metadata(d *jx.Decoder, name []byte) error {
	switch string(name) {
	case "creationTimestamp":
		return setMoment(d, &r.created)
	case "labels":
		return textUnder(d, volcano.CooldownKey, &r.labelled, &r.hasLabel)
	case "annotations":
		return textUnder(d, volcano.CooldownKey, &r.annotated, &r.hasAnnotation)
	}
	return d.Skip()
}

// textUnder reads the text under one key of a map of texts.
func textUnder(d *jx.Decoder, key string, to *string, present *bool) error {
	return member(d, key, func(d *jx.Decoder) error {
		*present = true
		return setText(d, to)
	})
}

func (r *podRecord) spec(d *jx.Decoder, name []byte) error {
	switch string(name) {
	case "priorityClassName":
		return setText(d, &r.class)
	case "schedulingGates":
		return array(d, func(d *jx.Decoder) error {
			r.gates++
			if r.gates > 1 {
				return d.Skip()
			}
			return member(d, "name", func(d *jx.Decoder) error { return setText(d, &r.gate) })
		})
	}
	return d.Skip()
}

func (r *podRecord) status(d *jx.Decoder, name []byte) error {
	switch string(name) {
	case "phase":
		return setText(d, &r.phase)
	case "conditions":
		return array(d, r.condition)
	}
	return d.Skip()
}

// condition reads when the pod was scheduled: the first condition PodScheduled that is true.
func (r *podRecord) condition(d *jx.Decoder) error {
	var kind, status string
	var since int64
	dated := false
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "type":
			return setText(d, &kind)
		case stateField:
			return setText(d, &status)
		case "lastTransitionTime":
			dated = d.Next() != jx.Null
			return setMoment(d, &since)
		}
		return d.Skip()
	})
	if kind == "PodScheduled" && status == "True" && !r.isScheduled && dated {
		r.isScheduled, r.scheduled = true, since
	}
	return err
}

// detail returns the rarely used fields. The cooldown's label takes precedence over the annotation even if it is not a duration; then the
// pod is not protected.
func (r *podRecord) detail() model.Detail {
	detail := model.Detail{PriorityClass: r.class}
	written := r.annotated
	if r.hasLabel {
		written = r.labelled
	}
	if !r.hasLabel && !r.hasAnnotation {
		return detail
	}
	cooldown, ok := volcano.Cooldown(written)
	if !ok {
		return detail
	}
	detail.Cooldown, detail.HasCooldown = cooldown, true
	if r.isScheduled && r.phase == "Running" {
		detail.ScheduleTime, detail.HasScheduleTime = r.scheduled, true
	}
	return detail
}
