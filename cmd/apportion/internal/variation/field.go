package variation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/spelling"
)

// leaveNodes removes the tasks of a job from removed nodes.
func (e *edit) leaveNodes(job *apportionv1.Job) {
	for _, group := range job.GetGroups() {
		for _, task := range group.GetTasks() {
			if task.Node != nil && e.gone[task.GetNode()] != "" {
				task.Node = nil
			}
		}
	}
}

func (s *setting) weight(q *apportionv1.Queue) error {
	weight, err := strconv.ParseUint(s.value, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a whole number from 0 to %d", s.value, math.MaxInt32)
	}
	s.before, s.after = "1", s.value
	if q.Weight != nil {
		s.before = strconv.FormatUint(uint64(q.GetWeight()), 10)
	}
	q.Weight = new(uint32(weight))
	return nil
}

func (s *setting) priority(at *int32) error {
	priority, err := strconv.ParseInt(s.value, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a whole number of 32 bits", s.value)
	}
	s.before, s.after = strconv.Itoa(int(*at)), s.value
	*at = int32(priority)
	return nil
}

func (s *setting) minimum(j *apportionv1.Job) error {
	minimum, err := strconv.ParseUint(s.value, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is not a whole number from 0 to %d", s.value, math.MaxInt32)
	}
	s.before, s.after = strconv.FormatUint(uint64(j.GetMinAvailable()), 10), s.value
	j.MinAvailable = uint32(minimum)
	return nil
}

// role sets the minimum of a role, or the maximum request of its waiting tasks: ROLE.minAvailable or ROLE.request.RESOURCE.
func (s *setting) role(j *apportionv1.Job) error {
	name, field := cutRole(j, s.resource)
	resource, isRequest := strings.CutPrefix(field, request)
	if !isRequest && field != minimum {
		return errors.New("after the period, role needs NAME.minAvailable or NAME.request.RESOURCE")
	}
	at := slices.IndexFunc(j.GetGroups(), func(g *apportionv1.TaskGroup) bool { return g.GetRole() == name })
	if at < 0 {
		var roles []string
		for _, group := range j.GetGroups() {
			roles = append(roles, strconv.Quote(group.GetRole()))
		}
		return fmt.Errorf("the job has no role %q; there are %s", name, list(slices.Values(roles)))
	}
	group := j.GetGroups()[at]
	if isRequest {
		s.resource = resource
		err := s.lowerRequest(group)
		s.resource = name + ".request." + s.resource
		return err
	}
	before := none
	if group.MinAvailable != nil {
		before = strconv.FormatUint(uint64(group.GetMinAvailable()), 10)
	}
	minimum := &apportionv1.Job{}
	err := s.minimum(minimum)
	s.before, group.MinAvailable = before, new(minimum.GetMinAvailable())
	return err
}

// readRole reads NAME.ROLE.minAvailable=VALUE or NAME.ROLE.request.RESOURCE=VALUE, where the job has this role, and reports whether it is
// that: NAME.role.ROLE… without the word role.
func (s *setting) readRole(rest string) bool {
	equals := strings.LastIndexByte(rest, '=')
	for at := strings.LastIndexByte(rest[:equals], '.'); at > 0; at = strings.LastIndexByte(rest[:at], '.') {
		index, err := s.edit.snapshot.Job(rest[:at])
		if err != nil {
			continue
		}
		job, text := s.edit.snapshot.GetJobs()[index], rest[at+1:equals]
		role, field := cutRole(job, text)
		known := slices.ContainsFunc(job.GetGroups(), func(g *apportionv1.TaskGroup) bool { return g.GetRole() == role })
		if known && (field == minimum || strings.HasPrefix(field, request)) {
			s.name, s.resource, s.value = rest[:at], text, rest[equals+1:]
			return true
		}
	}
	return false
}

// What may follow a role.
const request, minimum = ".request.", ".minAvailable"

// cutRole cuts ROLE.minAvailable or ROLE.request.RESOURCE behind the role: that in quotation marks, the longest of the job that fits, or
// what is before the first field.
func cutRole(j *apportionv1.Job, text string) (role, field string) {
	if name, after, quoted := cutQuoted(text); quoted {
		return name, after
	}
	best := -1
	for _, group := range j.GetGroups() {
		name := group.GetRole()
		after, found := strings.CutPrefix(text, name)
		if found && len(name) > best && (after == minimum || strings.HasPrefix(after, request)) {
			best = len(name)
		}
	}
	if best < 0 {
		best = strings.Index(text, request)
	}
	if best < 0 {
		best = len(strings.TrimSuffix(text, minimum))
	}
	return text[:best], text[best:]
}

// lowerRequest limits the request of each waiting task of a group. Running tasks keep theirs.
func (s *setting) lowerRequest(group *apportionv1.TaskGroup) error {
	limit := &apportionv1.Resource{}
	if err := s.amount(&limit); err != nil {
		return err
	}
	dimension, most := limit.GetDimensions()[0], limit.GetAmounts()[0]
	whole, greatest := group.GetRequest(), 0.0
	lower := func(asked *apportionv1.Resource) *apportionv1.Resource {
		at := slices.Index(asked.GetDimensions(), dimension)
		if at < 0 || asked.GetAmounts()[at] <= most {
			return asked
		}
		greatest = max(greatest, asked.GetAmounts()[at])
		asked = proto.CloneOf(asked)
		asked.Amounts[at] = most
		return asked
	}
	for _, task := range group.GetTasks() {
		switch task.GetStatus() {
		case apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED, apportionv1.TaskStatus_TASK_STATUS_PENDING:
		default:
			continue
		}
		own := task.GetDetail().GetRequest()
		asked := own
		if own == nil {
			asked = whole
		}
		if lowered := lower(asked); lowered != asked {
			if task.Detail == nil {
				task.Detail = &apportionv1.TaskDetail{}
			}
			task.Detail.Request = lowered
		}
	}
	if greatest == 0 {
		return fmt.Errorf("no waiting task of the role requests more than %s", s.after)
	}
	s.fromTo(s.edit.names[dimension], greatest, most)
	return nil
}

// otherNode lets the waiting tasks of a job use a node in addition to those of their node sets.
func (s *setting) otherNode(j *apportionv1.Job) error {
	node, err := s.edit.snapshot.Node(s.valueName("node"))
	if err != nil {
		return err
	}
	wider := map[string]string{"": ""}
	for _, group := range j.GetGroups() {
		for _, task := range group.GetTasks() {
			switch task.GetStatus() {
			case apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED, apportionv1.TaskStatus_TASK_STATUS_PENDING:
			default:
				continue
			}
			set := cmp.Or(task.GetDetail().GetNodeSet(), group.GetNodeSet())
			name, known := wider[set]
			if !known {
				name = s.edit.widened(set, s.subject, node)
				wider[set] = name
			}
			if name != set {
				if task.Detail == nil {
					task.Detail = &apportionv1.TaskDetail{}
				}
				task.Detail.NodeSet = name
			}
		}
	}
	if len(wider) == 1 {
		return errors.New("no node set restricts a waiting task of the job")
	}
	s.before, s.after = none, s.value
	return nil
}

// widened returns the name of a node set of a job with an additional node, and adds the set if it is new.
func (e *edit) widened(name, job string, node uint32) string {
	if e.firm(name, node) {
		return name
	}
	suffix := ", or other nodes for " + job
	at := slices.IndexFunc(e.sets, func(s *apportionv1.NodeSet) bool { return s.GetName() == name })
	if at >= 0 && strings.HasSuffix(name, suffix) {
		if !slices.Contains(e.sets[at].GetNodes(), node) {
			e.sets[at].Nodes = append(e.sets[at].Nodes, node)
		}
		return name
	}
	wide := &apportionv1.NodeSet{Name: name + suffix}
	for _, set := range slices.Concat(e.snapshot.GetNodeSets(), e.sets) {
		if set.GetName() == name {
			wide.Rule, wide.Nodes = set.GetRule(), slices.Clone(set.GetNodes())
			wide.ToleratesCordon, wide.Fixed = set.GetToleratesCordon(), set.GetFixed()
		}
	}
	if !slices.Contains(wide.GetNodes(), node) {
		wide.Nodes = append(wide.Nodes, node)
	}
	e.sets = append(e.sets, wide)
	return wide.GetName()
}

// firm reports whether no change of a task lets those of a node set use a node.
func (e *edit) firm(name string, node uint32) bool {
	for _, set := range e.snapshot.GetNodeSets() {
		if set.GetName() != name || slices.Contains(set.GetNodes(), node) {
			continue
		}
		rest := false
		for _, x := range set.GetExclusions() {
			if slices.Contains(x.GetNodes(), node) {
				return x.GetFirm()
			}
			rest = rest || len(x.GetNodes()) == 0 && x.GetFirm()
		}
		return rest
	}
	return false
}

func (s *setting) moveTo(j *apportionv1.Job) error {
	if _, err := s.edit.snapshot.Queue(s.valueName("queue")); err != nil {
		return err
	}
	s.before, s.after = j.GetQueue(), s.value
	j.Queue = s.value
	return nil
}

var states = map[string]apportionv1.QueueState{
	"open": apportionv1.QueueState_QUEUE_STATE_OPEN, "closing": apportionv1.QueueState_QUEUE_STATE_CLOSING,
	"closed": apportionv1.QueueState_QUEUE_STATE_CLOSED,
}

func (s *setting) state(q *apportionv1.Queue) error {
	state, ok := states[strings.ToLower(s.value)]
	if !ok {
		return fmt.Errorf("no state %q; there are %s", s.value, list(maps.Keys(states)))
	}
	s.before, s.after = "open", strings.ToLower(s.value)
	for name, known := range states {
		if known == q.GetState() {
			s.before = name
		}
	}
	q.State = state
	if q.GetKueue() != nil {
		q.Kueue.Stopped = state != apportionv1.QueueState_QUEUE_STATE_OPEN
	}
	return nil
}

func (s *setting) reclaimable(q *apportionv1.Queue) error {
	on, err := strconv.ParseBool(s.value)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", s.value)
	}
	s.before, s.after = "true", s.value
	if q.Reclaimable != nil {
		s.before = strconv.FormatBool(q.GetReclaimable())
	}
	q.Reclaimable = &on
	return nil
}

// none is the value that removes an amount.
const none = "none"

// fromTo notes what an amount was and becomes, in one unit.
func (s *setting) fromTo(dimension string, was, is float64) {
	unit := quantity.UnitOf(dimension, was, is).Exactly(was, is)
	s.before, s.after = unit.Format(was), unit.Format(is)
}

// amount sets the amount of a resource.
func (s *setting) amount(of **apportionv1.Resource) error {
	dimension, err := s.dimension()
	if err != nil {
		return err
	}
	name := s.edit.names[dimension]
	resource := *of
	at := slices.Index(resource.GetDimensions(), dimension)
	s.resource, s.before, s.after = name, none, s.value
	if at >= 0 {
		s.before = quantity.Format(name, resource.GetAmounts()[at])
	}
	if s.value == none {
		if at < 0 {
			return fmt.Errorf("there is no %s to remove", name)
		}
		resource.Dimensions, resource.Amounts = slices.Delete(resource.Dimensions, at, at+1), slices.Delete(resource.Amounts, at, at+1)
		return nil
	}
	amount, err := quantity.Parse(name, s.value)
	if err != nil {
		return err
	}
	if resource == nil {
		resource = &apportionv1.Resource{}
		*of = resource
	}
	if at < 0 {
		resource.Dimensions, resource.Amounts = append(resource.Dimensions, dimension), append(resource.Amounts, amount)
		return nil
	}
	s.fromTo(name, resource.GetAmounts()[at], amount)
	resource.Amounts[at] = amount
	return nil
}

// dimension finds a resource by its name, or by the part after the slash.
func (s *setting) dimension() (uint32, error) {
	e := s.edit
	if name, after, quoted := cutQuoted(s.resource); quoted && after == "" {
		s.resource = name
	}
	if s.resource == "" {
		return 0, errors.New("the field needs a resource, such as capability.cpu")
	}
	if at := slices.Index(e.names, s.resource); at >= 0 {
		return uint32(at), nil
	}
	var found []string
	for _, name := range e.names {
		if _, last, _ := strings.Cut(name, "/"); last == s.resource {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return uint32(slices.Index(e.names, found[0])), nil
	case len(found) > 1:
		return 0, fmt.Errorf("more than one resource is called %s: %s", s.resource, strings.Join(found, ", "))
	case slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, s.resource) || strings.Contains(s.resource, "/"):
		e.names = append(e.names, s.resource)
		return uint32(len(e.names) - 1), nil
	}
	short := slices.Clone(e.names)
	for i, name := range short {
		if _, last, cut := strings.Cut(name, "/"); cut {
			short[i] = last
		}
	}
	like := spelling.Suggestion(s.resource, slices.Values(short))
	return 0, fmt.Errorf("no resource %q%s", s.resource, spelling.Then(like, "the cluster has "+lookup.Some(e.names)))
}
