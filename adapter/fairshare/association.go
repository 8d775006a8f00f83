package fairshare

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/internal/quantity"
)

// rootAccount is the account above all others.
const rootAccount = "root"

// associations are the rows of all tables of associations.
type associations struct {
	// cluster is the one whose accounts become queues, own counts its rows, and others those of other clusters.
	cluster string
	own     int
	others  map[string]int
	column  map[string]int
	cells   []string
	seen    map[string]bool
	// unread counts the rows that state something in a column that is not read, users those of users with shares or limits.
	unread map[string]int
	users  int
}

// readColumns are those that are read, and those that limit nothing.
var readColumns = []string{
	"account", "user", "parname", "parentname", "share", "fairshare", "grptresmins", "grptres", "cluster", "partition", "id", "lft", "rgt",
	"lineage", "comment",
}

// associations reads the accounts of the cluster of slurm.conf, "" if it names none, as queues, their GrpTRESMins as budgets and their
// GrpTRES as limits.
func (p *proposal) associations(tables []Source, cluster, reset string) error {
	a := &associations{cluster: cluster, others: map[string]int{}, seen: map[string]bool{}, unread: map[string]int{}}
	for _, s := range tables {
		if err := p.table(a, s, reset); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	others := slices.Sorted(maps.Keys(a.others))
	switch {
	case len(others) == 0:
	case cluster == "":
		return fmt.Errorf("the associations are of several clusters, %s and %s, and slurm.conf names none (ClusterName): give the output "+
			"of %s cluster=NAME", a.cluster, strings.Join(others, ", "), associationsOf)
	case a.own == 0:
		return fmt.Errorf("the associations are of cluster %s, and slurm.conf is of %s (ClusterName)", strings.Join(others, ", "), cluster)
	}
	for _, other := range others {
		p.note("cluster %s is left out (%d associations): slurm.conf is of %s", other, a.others[other], cluster)
	}
	if a.users > 0 {
		p.note("shares and limits of users are not carried over (%d): Queue.owners states weights, budgets are those of queues", a.users)
	}
	for _, name := range slices.Sorted(maps.Keys(a.unread)) {
		p.note("column %s is not carried over, which %d of the associations state", name, a.unread[name])
	}
	return nil
}

// table reads a table of associations.
func (p *proposal) table(a *associations, s Source, reset string) error {
	// An editor of Windows begins a file with a mark.
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimLeft(s.Data, "\ufeff\r\n")))
	lines.Buffer(nil, 1<<20)
	a.column = map[string]int{}
	for lines.Scan() {
		a.cells = strings.Split(strings.TrimSpace(lines.Text()), "|")
		if len(a.column) > 0 {
			if err := p.association(a, reset); err != nil {
				return err
			}
			continue
		}
		for i, name := range a.cells {
			a.column[strings.ToLower(strings.ReplaceAll(name, " ", ""))] = i
		}
		if !a.has("account") {
			return errors.New("the first line names no column Account, as sacctmgr show assoc -P writes it")
		}
		if !a.has("parname") && !a.has("parentname") {
			p.note("there is no column ParentName: all accounts are directly below the root")
		}
	}
	return lines.Err()
}

func (a *associations) has(name string) bool {
	_, is := a.column[name]
	return is
}

// cell returns what a row states in the first of some columns that exists.
func (a *associations) cell(names ...string) string {
	for _, name := range names {
		if i, ok := a.column[name]; ok && i < len(a.cells) {
			return a.cells[i]
		}
	}
	return ""
}

// other reports whether a row is of another cluster, and counts it. A row without a cluster is of the one that is read, which is the first
// if slurm.conf names none.
func (a *associations) other() bool {
	cluster := a.cell("cluster")
	if a.cluster == "" {
		a.cluster = cluster
	}
	if cluster == "" || strings.EqualFold(cluster, a.cluster) {
		a.own++
		return false
	}
	a.others[cluster]++
	return true
}

// association reads a row.
func (p *proposal) association(a *associations, reset string) error {
	if a.other() {
		return nil
	}
	for name, i := range a.column {
		if i < len(a.cells) && a.cells[i] != "" && !slices.Contains(readColumns, name) {
			a.unread[name]++
		}
	}
	account, share, limit := a.cell("account"), a.cell("share", "fairshare"), a.cell("grptres")
	switch {
	case account == "":
		return nil
	case a.cell("user") != "":
		if share != "1" && share != "" || a.cell("grptresmins") != "" || limit != "" {
			a.users++
		}
		return nil
	case a.seen[account] && !a.has("cluster"):
		return fmt.Errorf("account %s is there twice, as if of two clusters: give the output of %s, which names them", account,
			associationsOf)
	case a.seen[account]:
		return fmt.Errorf("account %s is there twice", account)
	}
	a.seen[account] = true
	parent := a.cell("parname", "parentname")
	if parent == rootAccount {
		parent = ""
	}
	if account != rootAccount {
		p.account(account, parent, share, limit)
	} else if limit != "" {
		p.note("account root: GrpTRES %s is not carried over: the nodes are the limit of the cluster", limit)
	}
	p.minutes(account, a.cell("grptresmins"), reset)
	return nil
}

func (p *proposal) account(name, parent, share, limit string) {
	weight, err := strconv.ParseUint(share, 10, 31)
	if err != nil {
		if share != "" {
			p.note("account %s: a fairshare of %q is no number; its weight is 1", name, share)
		}
		weight = 1
	}
	p.Queues = append(p.Queues, Queue{Name: name, Parent: parent, Weight: uint32(weight), Capability: p.limit(name, limit)})
}

// limit makes a capability of GrpTRES, such as cpu=1000,mem=4000G,gres/gpu=16.
func (p *proposal) limit(account, text string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		tres, amount, _ := strings.Cut(part, "=")
		name := resourceOf(tres)
		if name == memory && amount != "" {
			// In MB, unless the number ends in another unit.
			if unit := amount[len(amount)-1]; unit >= '0' && unit <= '9' {
				amount += "M"
			}
			amount += "i"
		}
		if part == "" {
			continue
		}
		if n, err := quantity.Parse(name, amount); name == "" || err != nil || n < 0 {
			p.note("account %s: GrpTRES %s is not carried over", account, part)
			continue
		}
		out[name] = amount
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// minutes makes a hard budget of GrpTRESMins, such as cpu=60000,gres/gpu=1200.
func (p *proposal) minutes(account, text, reset string) {
	hours := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		tres, number, _ := strings.Cut(part, "=")
		name := resourceOf(tres)
		minutes, err := strconv.ParseUint(number, 10, 50)
		switch {
		case part == "":
			continue
		case name == "" || err != nil:
			p.note("account %s: GrpTRESMins %s is not carried over", account, part)
			continue
		case name == memory:
			hours[name] = strconv.FormatUint(minutes<<10/60, 10) + "Ki"
			if minutes%60 == 0 {
				hours[name] = strconv.FormatUint(minutes/60, 10) + "Mi"
			}
		default:
			// Thousandths are the least that counts.
			thousandths := (minutes*1000 + 30) / 60
			hours[name] = strconv.FormatUint(thousandths/1000, 10)
			if rest := thousandths % 1000; rest > 0 {
				hours[name] += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
			}
		}
	}
	if len(hours) == 0 {
		return
	}
	if len(p.Budgets) == 0 {
		p.note("GrpTRESMins become hard budgets: in Slurm what was used of them decays with PriorityDecayHalfLife, here it counts in full")
	}
	p.Budgets = append(p.Budgets, Budget{Queue: account, Begin: periodOf(reset, p.now), Hours: hours})
}
