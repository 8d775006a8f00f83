package docs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/notation"
)

func digits(x float64) string {
	if math.IsInf(x, 1) {
		return "unlimited"
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// quantity shows an amount in cores, Gi where that is short, whole pods and whole units.
func quantity(name string, x float64) string {
	if name == "memory" && math.Abs(x) >= 1<<20 && !math.IsInf(x, 0) {
		return digits(x/(1<<30)) + "Gi"
	}
	return digits(x / notation.Unit(name))
}

func (c *console) row(r resource.Row) string {
	var parts []string
	for m := r.Has; m != 0; m = m.Rest() {
		d := m.First()
		if name := c.view().Dims.Name(d); c.mentioned(d) {
			parts = append(parts, name+" "+quantity(name, r.V[d]))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// mentioned says whether a dimension occurs in the example: cpu and memory are always present, and only noise where no request names them.
func (c *console) mentioned(d int) bool {
	if d > resource.Memory {
		return true
	}
	v := c.view()
	if v.Total.V[d] != 0 {
		return true
	}
	for _, r := range v.Requests {
		if r.V[d] != 0 {
			return true
		}
	}
	return false
}

func (c *console) reason(r policy.Reason) string {
	var text strings.Builder
	if r.Plugin != "" {
		text.WriteString(r.Plugin + ", ")
	}
	code := apportionv1.CauseCode(r.Code).String()
	text.WriteString(strings.TrimPrefix(code, "CAUSE_CODE_"))
	if r.Queue != model.None {
		text.WriteString(", queue " + c.view().Queues[r.Queue].Name)
	}
	if r.Plugin == "gang" && r.Detail != "" {
		text.WriteString(", role " + r.Detail)
	}
	number := digits
	if r.Dimension >= 0 {
		name := c.view().Dims.Name(r.Dimension)
		text.WriteString(", " + name)
		number = func(x float64) string { return quantity(name, x) }
	}
	if r.Code == policy.CooldownActive {
		number = func(x float64) string { return digits(x/1e9) + " s" }
	}
	if r.Code == policy.HierarchyRefused {
		return text.String()
	}
	if r.Have != 0 || r.Need != 0 || r.Limit != 0 || r.Dimension >= 0 {
		text.WriteString(": have " + number(r.Have))
		if r.Need != 0 {
			text.WriteString(", need " + number(r.Need))
		}
		text.WriteString(", limit " + number(r.Limit))
	}
	return text.String()
}

func warningName(code policy.WarningCode) string {
	return strings.TrimPrefix(apportionv1.WarningCode(code).String(), "WARNING_CODE_")
}

// shares reads fields, all others being names of queues.
func (c *console) shares(words []string) {
	fields := map[string]func(policy.Share) string{
		"deserved":   func(s policy.Share) string { return "deserved " + c.row(s.Deserved) },
		"allocated":  func(s policy.Share) string { return "allocated " + c.row(s.Allocated) },
		"request":    func(s policy.Share) string { return "request " + c.row(s.Request) },
		"inqueue":    func(s policy.Share) string { return "inqueue " + c.row(s.Inqueue) },
		"elastic":    func(s policy.Share) string { return "elastic " + c.row(s.Elastic) },
		"guarantee":  func(s policy.Share) string { return "guarantee " + c.row(s.Guarantee) },
		"capability": func(s policy.Share) string { return "capability " + c.row(s.Capability) },
		"real":       func(s policy.Share) string { return "real capability " + c.row(s.RealCapability) },
		"share": func(s policy.Share) string {
			if s.Dominant < 0 {
				return "share " + digits(s.Share)
			}
			return fmt.Sprintf("share %s (%s)", digits(s.Share), c.view().Dims.Name(s.Dominant))
		},
		"overused": func(s policy.Share) string {
			if s.Overused {
				return "overused"
			}
			return "not overused"
		},
	}
	var wanted []func(policy.Share) string
	var queues []string
	for _, word := range words {
		if f, ok := fields[word]; ok {
			wanted = append(wanted, f)
		} else {
			queues = append(queues, word)
		}
	}
	for _, d := range c.s.Dividers() {
		if d.Queues == nil {
			continue
		}
		for _, q := range c.selected(queues) {
			share, ok := d.Queues.Share(q)
			parts := []string{}
			for _, f := range wanted {
				parts = append(parts, f(share))
			}
			if !ok {
				parts = []string{"takes no part"}
			}
			c.say("%s: %s", c.view().Queues[q].Name, strings.Join(parts, "; "))
		}
	}
}

// rounds shows the division of proportion step by step.
func (c *console) rounds([]string) {
	for _, d := range c.s.Dividers() {
		state, ok := d.State.(*proportion.State)
		if !ok {
			continue
		}
		derivation, err := state.Derive(nil, &divisionSteps{console: c})
		if err != nil {
			c.err = err
			return
		}
		end := strings.TrimPrefix(apportionv1.ProportionEnd(derivation.End).String(), "PROPORTION_END_")
		c.say("end: %s", strings.ToLower(strings.ReplaceAll(end, "_", " ")))
	}
}

// divisionSteps shows a division while it divides.
type divisionSteps struct {
	*console

	rounds int
}

func (d *divisionSteps) Round(remaining resource.Row, totalWeight int64) error {
	d.rounds++
	d.say("round %d: %s remains, weights add up to %d", d.rounds, d.row(remaining), totalWeight)
	return nil
}

func (d *divisionSteps) Step(s *proportion.Step) error {
	met := ""
	if s.Met {
		met = ", met"
	}
	d.say("  %s: weighted %s; capped %s; requested %s; deserved %s%s", d.view().Queues[s.Queue].Name,
		d.row(s.Weighted), d.row(s.Capped), d.row(s.Requested), d.row(s.Deserved), met)
	return nil
}

func (c *console) drf([]string) {
	for _, d := range c.s.Dividers() {
		if d.Jobs == nil {
			continue
		}
		for _, j := range c.view().Present() {
			share, _ := d.Jobs.JobShare(j)
			dominant := "nothing dominant"
			if share.Dominant >= 0 {
				dominant = c.view().Dims.Name(share.Dominant)
			}
			c.say("%s: share %s (%s)", c.view().Jobs.At(j).UID, digits(share.Share), dominant)
		}
	}
}

func (c *console) tree([]string) {
	for _, d := range c.s.Dividers() {
		if d.Tree == nil {
			continue
		}
		nodes := d.Tree.Nodes()
		var show func(parent, depth int)
		show = func(parent, depth int) {
			for i, n := range nodes {
				if n.Parent != parent {
					continue
				}
				text := fmt.Sprintf("%s%s: weight %s, share %s", strings.Repeat("  ", depth), n.Name, digits(n.Weight), digits(n.Share))
				if n.Job != model.None {
					text = strings.Repeat("  ", depth) + c.view().Jobs.At(n.Job).UID + ": share " + digits(n.Share)
				}
				if n.Saturated {
					text += ", saturated"
				}
				c.say("%s", text)
				show(i, depth+1)
			}
		}
		show(-1, 0)
	}
}

func (c *console) total([]string) { c.say("%s", c.row(c.view().Total)) }
