package admission

import (
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/setting"
)

// Options configure how much work a Controller admits. They are the settings overload.*.
type Options = setting.Overload

// complete replaces values that are not above zero by their defaults.
func complete(o *Options) {
	o.Wait = max(o.Wait, 0)
	setting.Complete(o)
	if o.Running <= 0 {
		o.Running = processor.Count()
	}
	if o.Reserve <= 0 {
		o.Reserve = 4 * o.Running
	}
}
