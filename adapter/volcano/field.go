package volcano

import (
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// resourcesAt reads quantities by resource name. nil: absent. Names that Volcano drops are left out.
func (r *reader) resourcesAt(v *objects.Value) *amounts {
	if !r.Is(v, objects.Map) {
		return nil
	}
	list := &amounts{entries: make([]entry, 0, len(v.Items)+1)}
	for _, item := range v.Items {
		q, ok := r.QuantityAt(item)
		if !ok {
			continue
		}
		dim, fresh := r.units.of(item.Key)
		if dim.unit == dropped {
			if fresh {
				r.WarnDropped(item, "%q is not a resource that Volcano accounts for", item.Key)
			}
			continue
		}
		amount := amountOf(&q, dim.unit)
		if overflows(&q, dim.unit) {
			if amount < 0 {
				r.Found.Add(r.Doc, item, "exceeds Volcano's range: %q", item.Text)
				continue
			}
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, item,
				"exceeds Volcano's range; it reads %q as %g", item.Text, amount)
		}
		place, _ := list.at(dim.name)
		place.amount = amount
	}
	return list
}
