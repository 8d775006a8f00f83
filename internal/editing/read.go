package editing

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/spelling"
)

// Reader reads edits of a snapshot.
type Reader struct {
	*lookup.Snapshot
	// Names are the dimensions of the snapshot, and then those that edits need besides.
	Names []string
}

// NewReader returns a reader of edits of a snapshot.
func NewReader(s *lookup.Snapshot) *Reader {
	return &Reader{Snapshot: s, Names: slices.Clone(s.GetDimensions())}
}

// Setting is an edit that was read.
type Setting struct {
	*apportionv1.Edit
	// Said says what it changes, and what the value is now.
	Said string
}

// parts are the parts of a setting in a text.
type parts struct {
	*form
	// name is the object's, of the resource behind the setting.
	name, of, value string
	role            *string
}

// Read reads OBJECT/NAME.SETTING=VALUE.
func (r *Reader) Read(text string) (*Setting, error) {
	if text == forget {
		if r.GetMemory() == nil {
			return nil, errors.New("the cluster has no memory")
		}
		return &Setting{&apportionv1.Edit{Kind: apportionv1.EditKind_EDIT_KIND_FORGET}, "ignore what queues used"}, nil
	}
	object, rest, found := strings.Cut(text, "/")
	if !found || strings.Contains(object, "=") || !strings.Contains(rest, "=") {
		return nil, errors.New("KIND/NAME.FIELD=VALUE is expected, such as queue/research.weight=5")
	}
	if len(of(object)) == 0 {
		like := spelling.Suggestion(object, objects())
		return nil, fmt.Errorf("no kind %q%s", object, spelling.Then(like, "there are "+list(objects())))
	}
	p, found := r.split(object, rest)
	if !found {
		target, _, _ := strings.Cut(rest, "=")
		return nil, fmt.Errorf("a %s has no such field%s", object, spelling.Then(meant(object, target), "there are "+described(object)))
	}
	e := &apportionv1.Edit{Kind: p.kind, Role: p.role}
	subject, err := r.find(e, p)
	if err != nil {
		return nil, err
	}
	s := &setting{Reader: r, parts: p, edit: e}
	if err := s.read(); err != nil {
		return nil, err
	}
	return &Setting{e, s.said(subject)}, nil
}

// split reads NAME.SETTING=VALUE. A name in quotation marks is read as in Go. Any other name may contain periods, equals signs and words
// that are settings, so the longest name that exists and has a setting behind it is meant; where there is none, the first setting ends the
// name.
func (r *Reader) split(object, text string) (parts, bool) {
	if name, after, quoted := cutQuoted(text); quoted && strings.HasPrefix(after, ".") {
		return r.behind(object, name, after[1:])
	}
	for at := strings.LastIndexByte(text, '.'); at > 0; at = strings.LastIndexByte(text[:at], '.') {
		if r.Has(object, text[:at]) {
			if p, found := r.behind(object, text[:at], text[at+1:]); found {
				return p, true
			}
		}
	}
	for at := range len(text) {
		if text[at] == '.' && at > 0 {
			if p, found := r.behind(object, text[:at], text[at+1:]); found {
				return p, true
			}
		}
	}
	return parts{}, false
}

// behind reads what follows a name: SETTING=VALUE, or for a job role.ROLE.SETTING=VALUE, without the word role if the job has the role.
func (r *Reader) behind(object, name, text string) (parts, bool) {
	for _, f := range of(object) {
		if p, found := f.match(text); found && !f.ofRole {
			p.name = name
			return p, true
		}
	}
	rest, said := strings.CutPrefix(text, "role.")
	for _, ofRole := range []string{rest, text} {
		if p, found := r.ofRole(object, name, ofRole); found {
			return p, true
		}
	}
	if !said {
		return parts{}, false
	}
	// No such role exists: the first setting ends its name.
	for at := range len(rest) {
		if rest[at] == '.' {
			if p, found := matchOfRole(object, rest[at+1:]); found {
				p.name, p.role = name, new(rest[:at])
				return p, true
			}
		}
	}
	return parts{}, false
}

// ofRole reads ROLE.SETTING=VALUE, where the job has this role, or it is in quotation marks. The longest such role is meant.
func (r *Reader) ofRole(object, name, text string) (parts, bool) {
	var found parts
	var known []string
	if index, err := r.Job(name); err == nil && object == aJob {
		known = RolesOf(r.GetJobs()[index])
	}
	if role, _, quoted := cutQuoted(text); quoted {
		known = append(known, role)
	}
	for _, role := range known {
		for _, written := range []string{role, strconv.Quote(role)} {
			after, begins := strings.CutPrefix(text, written+".")
			if p, ok := matchOfRole(object, after); begins && ok && (found.role == nil || len(role) > len(*found.role)) {
				p.name, p.role = name, new(role)
				found = p
			}
		}
	}
	return found, found.form != nil
}

// matchOfRole reads a setting of a role.
func matchOfRole(object, text string) (parts, bool) {
	for _, f := range of(object) {
		if p, found := f.match(text); found && f.role {
			return p, true
		}
	}
	return parts{}, false
}

// match reads SETTING=VALUE or SETTING.RESOURCE=VALUE. Values of resources have no equals sign, their names may have one.
func (f *form) match(text string) (parts, bool) {
	after, found := strings.CutPrefix(text, f.setting)
	if !found {
		return parts{}, false
	}
	if !f.resourced() {
		value, found := strings.CutPrefix(after, "=")
		return parts{form: f, value: value}, found
	}
	at := strings.LastIndexByte(after, '=')
	if at < 0 {
		return parts{}, false
	}
	return parts{form: f, of: after[:at], value: after[at+1:]}, true
}

// meant returns the setting that a part of NAME.SETTING probably refers to.
func meant(object, target string) string {
	for part := range strings.SplitSeq(target, ".") {
		for _, f := range of(object) {
			if like := spelling.Suggestion(part, slices.Values([]string{f.bare()})); like != "" {
				return like
			}
		}
	}
	return ""
}

// RolesOf returns the roles of a job, and its pod sets of Kueue.
func RolesOf(job *apportionv1.Job) []string {
	var roles []string
	for _, group := range job.GetGroups() {
		roles = append(roles, group.GetRole())
	}
	for _, set := range job.GetKueue().GetPodSets() {
		roles = append(roles, set.GetName())
	}
	return roles
}

// find finds the object of an edit, and returns its name.
func (r *Reader) find(e *apportionv1.Edit, p parts) (string, error) {
	switch p.object {
	case aJob:
		index, err := r.Job(p.name)
		if err != nil {
			return "", err
		}
		job := r.GetJobs()[index]
		if p.role != nil && !slices.Contains(RolesOf(job), *p.role) {
			var roles []string
			for _, role := range RolesOf(job) {
				roles = append(roles, strconv.Quote(role))
			}
			return "", fmt.Errorf("the job has no role %q; there are %s", *p.role, list(slices.Values(roles)))
		}
		e.Object = &apportionv1.Edit_Job{Job: &apportionv1.Ref{Index: &index, Name: job.GetUid()}}
		return r.JobName(index), nil
	case aNode:
		index, err := r.Node(p.name)
		e.Object = &apportionv1.Edit_Node{Node: &apportionv1.Ref{Index: &index, Name: p.name}}
		return p.name, err
	case aFlavor:
		e.NodeSet = p.name
		return p.name, nil
	}
	index, err := r.Queue(p.name)
	if err != nil {
		return "", err
	}
	own := r.GetQueues()[index].GetKueue()
	switch {
	case p.object == aClusterQueue && (own == nil || own.GetCohort()):
		return "", fmt.Errorf("queue %s is no ClusterQueue", p.name)
	case p.object == aCohort && !own.GetCohort():
		return "", fmt.Errorf("queue %s is no cohort", p.name)
	}
	e.Object = &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: &index, Name: p.name}}
	return p.name, nil
}

// setting is an edit that is read.
type setting struct {
	*Reader
	parts

	edit *apportionv1.Edit
}

// read reads the value.
func (s *setting) read() error {
	switch s.form.value {
	case amount, seconds, quota:
		return s.readAmount()
	case number:
		return s.readNumber()
	case words:
		return s.readWord()
	case toQueue:
		return s.readTarget(s.Queue, "queue")
	case toNode:
		return s.readTarget(s.Node, aNode)
	default:
		if s.value != None {
			s.edit.Text = s.value
		}
		if s.edit.GetText() == "" && s.now() == None {
			return fmt.Errorf("there is no %s to remove", s.setting)
		}
		return nil
	}
}

func (s *setting) readNumber() error {
	x, err := strconv.ParseFloat(s.value, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("%q is not a number", s.value)
	}
	s.edit.Amount = &x
	return nil
}

func (s *setting) readWord() error {
	for _, w := range s.words {
		if w.word != s.value {
			continue
		}
		if s.edit.Kind, s.edit.Text = w.kind, w.text; s.setting == "cordoned" && w.word == s.now() {
			takes := map[string]string{yes: "takes no", "false": "takes"}[w.word]
			return fmt.Errorf("the node %s new tasks already", takes)
		}
		return nil
	}
	values := s.values()
	last := values[len(values)-1]
	if others := strings.Join(values[:len(values)-1], ", "); others != "" {
		last = others + " or " + last
	}
	return fmt.Errorf("%q is not %s", s.value, last)
}

// readTarget reads a name that may be in quotation marks.
func (s *setting) readTarget(find func(string) (uint32, error), object string) error {
	name := s.value
	if !s.Has(object, name) {
		name = unquoted(name)
	}
	index, err := find(name)
	s.edit.To = &apportionv1.Ref{Index: &index, Name: name}
	return err
}

// readAmount reads the resource and the amount of it.
func (s *setting) readAmount() error {
	var dimension uint32
	var err error
	if s.form.value == quota {
		dimension, s.edit.NodeSet, err = s.quota()
	} else {
		dimension, err = s.dimension(unquoted(s.of))
	}
	if err != nil {
		return err
	}
	s.edit.Dimension = &dimension
	x := 0.0
	switch _, there := s.amountNow(); {
	case s.value == None && s.kept:
		return errors.New("an amount is needed: 0 is the least")
	case s.value == None && !there:
		return fmt.Errorf("there is no %s to remove", s.Names[dimension])
	case s.value == None:
		return nil
	case s.form.value == seconds:
		whole, wrong := strconv.ParseInt(s.value, 10, 64)
		if wrong != nil || whole < 0 {
			err = fmt.Errorf("%q is no amount of quantum-seconds, a whole number from 0 on", s.value)
		}
		x = float64(whole)
	default:
		x, err = quantity.Parse(s.Names[dimension], s.value)
	}
	s.edit.Amount = &x
	return err
}

// quota finds the quota of RESOURCE, or of RESOURCE@FLAVOR, of a queue.
func (s *setting) quota() (dimension uint32, flavor string, err error) {
	resource, rest, quoted := cutQuoted(s.of)
	rest, flavored := strings.CutPrefix(rest, "@")
	if !quoted {
		resource, rest, flavored = strings.Cut(s.of, "@")
	}
	rest = unquoted(rest)
	var there []string
	matching := 0
	for _, o := range s.GetQueues()[s.edit.GetQueue().GetIndex()].GetKueue().GetQuotas() {
		for _, d := range o.GetNominal().GetDimensions() {
			name := s.Names[d]
			there = append(there, name+"@"+o.GetNodeSet())
			if (name == resource || strings.HasSuffix(name, "/"+resource)) && (!flavored || o.GetNodeSet() == rest) {
				matching++
				dimension, flavor = d, o.GetNodeSet()
			}
		}
	}
	switch {
	case len(there) == 0:
		err = fmt.Errorf("%s %s has no quota", s.object, s.name)
	case matching == 0:
		err = fmt.Errorf("the queue has no quota of %s; it has %s", s.of, lookup.Some(there))
	case matching > 1:
		err = fmt.Errorf("several flavors have %s: name one of %s", resource, lookup.Some(there))
	}
	return dimension, flavor, err
}

// dimension finds a resource by its name, or by the part after the slash. One that nodes may have and the snapshot has not is added.
func (s *setting) dimension(resource string) (uint32, error) {
	if resource == "" {
		return 0, errors.New("the field needs a resource, such as capability.cpu")
	}
	if at := slices.Index(s.Names, resource); at >= 0 {
		return uint32(at), nil
	}
	var found, short []string
	for _, name := range s.Names {
		_, last, _ := strings.Cut(name, "/")
		if short = append(short, cmp.Or(last, name)); last == resource {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return uint32(slices.Index(s.Names, found[0])), nil
	case len(found) > 1:
		return 0, fmt.Errorf("more than one resource is called %s: %s", resource, strings.Join(found, ", "))
	case slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, resource) || strings.Contains(resource, "/"):
		s.Names = append(s.Names, resource)
		return uint32(len(s.Names) - 1), nil
	}
	like := spelling.Suggestion(resource, slices.Values(short))
	return 0, fmt.Errorf("no resource %q%s", resource, spelling.Then(like, "the cluster has "+lookup.Some(s.Names)))
}
