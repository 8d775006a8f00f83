package text

import (
	"math"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
)

// advice says what would have to change for every bound that is exceeded: what others must give back, and what the job may ask for instead,
// where either is possible.
func advice(names Names, e *apportionv1.Explanation, f *apportionv1.Finding) string {
	var give, less []string
	giving, leaves, some := true, true, false
	overcommit := false
	list := exceeded(f.GetCauses())
	levels := slices.ContainsFunc(list, func(x excess) bool { return x.queue != list[0].queue })
	for i, x := range list {
		name := names.Dimension(x.dimension)
		amount := rounded(name, x.over, math.Ceil) + " " + name
		if levels && x.queue >= 0 {
			amount += " in queue " + names.Queue(uint32(x.queue))
		}
		give = append(give, amount)
		giving, some, overcommit = giving && x.giving, some || x.limited, x.overcommit
		if bound, first := tightest(list, i); first {
			left := rounded(name, bound, math.Floor)
			less = append(less, left+" "+name)
			leaves = leaves && bound > 0 && left != "0"
		}
	}
	if len(give) == 0 {
		return ""
	}
	first := "at least " + and(give) + " must be given back first"
	if overcommit {
		first = "at least " + and(give) + " must become free first"
	}
	asks := "the job"
	if f.Task != nil && e.GetNeededTasks() > 1 {
		// The numbers are those of one task, and the others need more.
		first, asks = first+" for one task alone", "each task"
	}
	instead := asks + " must ask for no more than " + and(less)
	switch {
	case giving && leaves:
		return " Either " + first + ", or " + instead + "."
	case giving:
		return " For that, " + first + "."
	case leaves:
		return " It asks for more than that in all: " + instead + "."
	case some:
		return " It asks for more than that in all."
	}
	return ""
}

// tightest returns what the bounds of a dimension leave the job, and whether it is listed for the first time.
func tightest(list []excess, i int) (left float64, first bool) {
	left, first = list[i].left, true
	for k, x := range list {
		if x.dimension == list[i].dimension {
			left, first = min(left, x.left), first && k >= i
		}
	}
	return left, first
}

// excess is by how much a queue exceeds a bound of a dimension.
type excess struct {
	dimension uint32
	// queue is the queue of the bound, -1 for a bound of the whole cluster.
	queue int64
	// over is the excess, left the amount that the job may request.
	over, left float64
	// giving says that the job could have what it asks for if others gave back, limited that the bound is above zero.
	giving, limited, overcommit bool
}

// exceeded lists the dimensions and queues whose bounds are exceeded, each with the tightest of its bounds.
func exceeded(reasons []*apportionv1.Cause) []excess {
	var list []excess
	for _, r := range reasons {
		over := r.GetHave() + r.GetNeed() - r.GetLimit()
		if len(r.GetDimensions()) == 0 || over <= 0 || !bounds[r.GetCode()] {
			continue
		}
		overcommit := r.GetCode() == apportionv1.CauseCode_CAUSE_CODE_ABOVE_OVERCOMMIT
		queue := int64(-1)
		if r.Queue != nil {
			queue = int64(r.GetQueue())
		}
		e := excess{
			r.GetDimensions()[0], queue, over, r.GetLimit() - r.GetHave(),
			overcommit || r.GetNeed() <= r.GetLimit(), r.GetLimit() > 0, overcommit,
		}
		at := slices.IndexFunc(list, func(known excess) bool { return known.dimension == e.dimension && known.queue == e.queue })
		if at < 0 {
			list = append(list, e)
			continue
		}
		known := &list[at]
		known.over, known.left = max(known.over, e.over), min(known.left, e.left)
		known.giving, known.limited = known.giving && e.giving, known.limited || e.limited
	}
	return list
}

// rounded writes an amount, in a unit that people use where it has no exact short form: a thousandth of a core, MiB, a whole device.
func rounded(dimension string, amount float64, round func(float64) float64) string {
	unit := 1000.0
	switch {
	case dimension == "cpu" || dimension == "pods":
		unit = 1
	case dimension == "memory":
		unit = 1 << 20
	case dimension == "ephemeral-storage" || strings.HasPrefix(dimension, "hugepages-"):
		unit = 1000 << 20
	}
	short := quantity.Short(dimension, amount)
	whole := dimension != "cpu" && unit == 1000
	if parsed, err := quantity.Parse(dimension, short); err == nil && parsed == amount && (!whole || amount == round(amount/unit)*unit) {
		return exactly(dimension, amount)
	}
	return exactly(dimension, round(amount/unit)*unit)
}

// bounds are the codes of reasons that compare have + need with a limit of resources.
var bounds = map[apportionv1.CauseCode]bool{
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY:        true,
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_DESERVED:               true,
	apportionv1.CauseCode_CAUSE_CODE_NO_DIMENSION_WITHIN_DESERVED: true,
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_OVERCOMMIT:             true,
	apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT:                  true,
	apportionv1.CauseCode_CAUSE_CODE_NOT_ENTITLED:                 true,
}
