package question

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

// entityPath matches paths of a queue, job or node of a snapshot, and of a field of it.
var entityPath = regexp.MustCompile(`^(?:open\.)?(?:input\.)?snapshot\.(queue|job|node)s\[(\d{1,9})\]\.?(.*)$`)

// place returns the path of a warning or a violation in readable form. `snapshot.queues[3].capability` is `cluster.yaml:12: queue research:
// capability` in manifests, and `snapshot.yaml: queues[3] (research): capability` in a snapshot of the contract. Other paths of the
// snapshot are the name of its file; paths of a policy stay as they are.
func (in *Loaded) place(path string) string {
	match := entityPath.FindStringSubmatch(path)
	if match == nil {
		if path == "snapshot" || strings.HasPrefix(path, "snapshot.") {
			return in.file
		}
		return path
	}
	index, err := strconv.Atoi(match[2])
	if err != nil {
		return path
	}
	name := in.nameOf(match[1], index)
	parts := []string{in.file, fmt.Sprintf("%ss[%d] (%s)", match[1], index, name)}
	if in.Cluster != nil {
		parts = []string{in.Cluster.Place(path), match[1] + " " + name}
	} else if name == "" {
		parts[1] = fmt.Sprintf("%ss[%d]", match[1], index)
	}
	if match[3] != "" {
		parts = append(parts, match[3])
	}
	return strings.Join(parts, ": ")
}

// nameOf returns the name of a queue, job or node of the snapshot, "" if it has none.
func (in *Loaded) nameOf(kind string, index int) string {
	s := in.Lookup
	switch {
	case s == nil:
	case kind == "queue" && index < len(s.GetQueues()):
		return s.GetQueues()[index].GetName()
	case kind == "job" && index < len(s.GetJobs()):
		return lookup.JobName(s.GetJobs()[index])
	case kind == "node" && index < len(s.GetNodes()):
		return s.GetNodes()[index].GetName()
	}
	return ""
}

// Placed returns warnings with readable places instead of paths.
func (in *Loaded) Placed(warnings []*apportionv1.Warning) []*apportionv1.Warning {
	out := make([]*apportionv1.Warning, len(warnings))
	for i, w := range warnings {
		out[i] = &apportionv1.Warning{Code: w.GetCode(), Path: in.place(w.GetPath()), Message: w.GetMessage(), Queue: w.Queue}
	}
	return out
}

// Named replaces the positions in the violations of an error by names.
func (in *Loaded) Named(err error) error {
	if err == nil {
		return nil
	}
	listed, total := client.Violations(err)
	if len(listed) == 0 {
		return err
	}
	lines := make([]string, 0, len(listed)+1)
	for _, v := range listed {
		if place := in.place(v.Path); place != "" {
			lines = append(lines, place+": "+v.Detail)
		} else {
			lines = append(lines, v.Detail)
		}
	}
	if total > len(listed) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(listed)))
	}
	return cli.Reworded(err, strings.Join(lines, "\n"))
}

// CheckResources returns an error for resources that the snapshot does not have.
func (a *Asking) CheckResources(snapshot *lookup.Snapshot) error {
	known := ResourceNames(snapshot)
	for _, asked := range a.Resources {
		if slices.Contains(known, asked) {
			continue
		}
		like := spelling.Suggestion(asked, slices.Values(known))
		all := "there are " + strings.Join(snapshot.GetDimensions(), ", ")
		return fmt.Errorf("--resource: no resource %q%s", asked, spelling.Then(like, all))
	}
	return nil
}

// Patches returns the changes of objects that make a remedy of a job.
func (in *Loaded) Patches(names text.Names, job uint32, remedy *apportionv1.Remedy) []objects.Patch {
	if remedy.GetKueue() == nil {
		return volcano.Patches(in.Lookup, names, in.Cluster, job, remedy)
	}
	return kueue.Patches(in.Lookup, job, remedy)
}
