package fairshare

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/contract/quantity"
	"github.com/apportion/apportion/internal/duration"
)

// slurm reads slurm.conf and the associations of `sacctmgr show assoc -P`, in any order.
func (p *proposal) slurm(sources []Source) error {
	settings, weights := map[string]string{}, map[string]string{}
	var configurations, tables []Source
	for _, s := range sources {
		isTable, err := table(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if isTable {
			tables = append(tables, s)
			continue
		}
		configurations = append(configurations, s)
		p.slurmConf(s, settings, weights)
	}
	if len(configurations) == 0 {
		return errors.New("slurm.conf is missing")
	}
	p.slurmUsage(settings)
	p.billing(weights, settings[defaultPartition])
	p.settings.Owners = true
	p.note("users of an account become the owners of its jobs: set the annotation apportion.dev/owner of PodGroups")
	p.note("Slurm's fairshare factor is one of several priorities of a job; here it decides between queues, and priorities within one")
	for _, s := range tables {
		if err := p.associations(s, strings.ToUpper(settings["priorityusageresetperiod"])); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if len(tables) == 0 {
		p.note("no associations: queues and budgets come from the output of %s", associationsOf)
	}
	return nil
}

// associationsOf is the command whose output is read.
const associationsOf = "sacctmgr show assoc -P format=Account,ParentName,User,Share,GrpTRESMins,GrpTRES"

// table reports whether a file is a table of associations rather than slurm.conf. Other outputs of Slurm's commands are refused.
func table(s Source) (bool, error) {
	first, rest, _ := strings.Cut(strings.TrimLeft(string(s.Data), "\ufeff\r\n"), "\n")
	second, _, _ := strings.Cut(rest, "\n")
	named := strings.Fields(strings.ReplaceAll(strings.ToLower(first), "|", " "))
	switch {
	case slices.Contains(named, "rawshares"):
		return false, errors.New("this is the output of sshare, which states no limits: give that of " + associationsOf)
	case strings.Contains(first, "|"):
		return true, nil
	case strings.HasPrefix(strings.TrimSpace(second), "---") || slices.Contains(named, "account") && !strings.Contains(first, "="):
		return false, errors.New("this is a table for people, whose columns cut names off: give the output of " + associationsOf)
	case strings.Contains("\n"+string(s.Data), "\nCluster - ") || strings.Contains("\n"+string(s.Data), "\nParent - "):
		return false, errors.New("this is the output of sacctmgr dump: give that of " + associationsOf)
	}
	return false, nil
}

// slurmConf reads settings by their names in lower case, and the TRESBillingWeights of partitions.
func (p *proposal) slurmConf(s Source, settings, weights map[string]string) {
	text := strings.ReplaceAll(strings.ReplaceAll(string(s.Data), "\r\n", "\n"), "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		partition := ""
		if fields := strings.Fields(line); len(fields) == 2 && strings.EqualFold(fields[0], "include") {
			p.note("%s: the file of Include %s is not read: give it with -f", s.Name, fields[1])
			continue
		}
		for field := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(field, "=")
			switch key = strings.ToLower(key); {
			case key == "partitionname":
				partition = value
			case partition == "":
				settings[key] = value
			case key == "default" && strings.EqualFold(value, "yes"):
				settings[defaultPartition] = partition
			case key == "tresbillingweights":
				weights[partition] = strings.Trim(value, `"`)
			}
		}
	}
}

// defaultPartition is the key of the partition's name that is the default; no setting is named so.
const defaultPartition = "default partition"

// slurmUsage reads how usage decays, and notes what else decides in Slurm.
func (p *proposal) slurmUsage(settings map[string]string) {
	if kind := settings["prioritytype"]; kind != "" && kind != "priority/multifactor" {
		p.note("PriorityType=%s: Slurm itself does not use past usage", kind)
	}
	half := 7 * 24 * time.Hour
	if text, set := settings["prioritydecayhalflife"]; set {
		var ok bool
		if half, ok = slurmTime(text); !ok {
			p.note("PriorityDecayHalfLife=%s is no time: 7 days, Slurm's default, are taken", text)
			half = 7 * 24 * time.Hour
		}
	}
	if half == 0 {
		half = 512 * epochs[0]
		p.note("PriorityDecayHalfLife=0: usage always decays here; the longest half-life is taken, and budgets do not decay")
	}
	p.halfLife(half)
	p.note("PriorityCalcPeriod is not needed: usage is stated once in an epoch of %s", duration.Format(p.Epoch))
	if reset := strings.ToUpper(settings["priorityusageresetperiod"]); reset != "" && reset != "NONE" {
		p.note("PriorityUsageResetPeriod=%s: usage is not reset; the first period of each budget is written: add the next ones", reset)
	}
	flags := strings.ToUpper(settings["priorityflags"])
	if strings.Contains(flags, "MAX_TRES") {
		p.note("PriorityFlags=MAX_TRES: prices are added here; if the greatest of them counted, dividing a queue by resource would pay")
	}
	if strings.Contains(flags, "NO_FAIR_TREE") {
		p.note("PriorityFlags=NO_FAIR_TREE: queues are compared level by level here, as in the fair tree")
	}
	for _, factor := range []string{"Age", "JobSize", "Partition", "QOS", "TRES"} {
		name := "PriorityWeight" + factor
		if value := settings[strings.ToLower(name)]; value != "" && value != "0" {
			p.note("%s=%s is not carried over: jobs of a queue are ordered by PriorityClass, owners' usage and age", name, value)
		}
	}
}

// slurmTime reads a time: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and days-hours:minutes:seconds.
func slurmTime(text string) (time.Duration, bool) {
	days, rest, dated := strings.Cut(text, "-")
	if !dated {
		days, rest = "0", text
	}
	units := map[bool][][]time.Duration{
		true:  {{time.Hour}, {time.Hour, time.Minute}, {time.Hour, time.Minute, time.Second}},
		false: {{time.Minute}, {time.Minute, time.Second}, {time.Hour, time.Minute, time.Second}},
	}[dated]
	parts := strings.Split(rest, ":")
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || len(parts) > len(units) {
		return 0, false
	}
	total := time.Duration(n) * 24 * time.Hour
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return 0, false
		}
		total += time.Duration(n) * units[len(parts)-1][i]
	}
	return total, true
}

// resourceOf returns the resource that a TRES is here; "" for none.
func resourceOf(tres string) string {
	switch strings.ToLower(tres) {
	case "cpu":
		return "cpu"
	case "mem":
		return memory
	case "gres/gpu":
		return gpu
	}
	return ""
}

// billing reads the weights of the default partition, or else the first, such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0, as prices.
func (p *proposal) billing(weights map[string]string, first string) {
	partitions := slices.Sorted(maps.Keys(weights))
	if len(partitions) == 0 {
		return
	}
	if weights[first] == "" {
		first = partitions[0]
	}
	for _, name := range partitions {
		if weights[name] != weights[first] {
			p.note("TRESBillingWeights of partition %s are taken; those of %s differ, and there is one list of prices", first, name)
			break
		}
	}
	prices := map[string]*big.Rat{}
	for part := range strings.SplitSeq(weights[first], ",") {
		tres, number, _ := strings.Cut(part, "=")
		name, unit := resourceOf(tres), int64(1)
		if name == memory {
			// For each MB, unless the number ends in another unit.
			unit = 1 << 20
			if at := strings.IndexByte("KMGTP", strings.ToUpper(number + " ")[max(len(number)-1, 0)]); number != "" && at >= 0 {
				unit, number = 1<<(10*(at+1)), number[:len(number)-1]
			}
		}
		price, ok := new(big.Rat).SetString(number)
		if name == "" || !ok || price.Sign() < 0 || len(number) > 16 || strings.ContainsAny(number, "eE/") {
			p.note("TRESBillingWeights: %s is not carried over", part)
			continue
		}
		prices[name] = price.Quo(price, new(big.Rat).SetInt64(unit))
	}
	p.prices(prices)
}

// associations reads accounts as queues and their GrpTRESMins as budgets.
func (p *proposal) associations(s Source, reset string) error {
	lines := bufio.NewScanner(bytes.NewReader(s.Data))
	lines.Buffer(nil, 1<<20)
	column, users, seen, unread := map[string]int{}, 0, map[string]bool{}, map[string]int{}
	for number := 1; lines.Scan(); number++ {
		cells := strings.Split(strings.TrimSpace(lines.Text()), "|")
		if number == 1 {
			for i, name := range cells {
				column[strings.ToLower(strings.ReplaceAll(name, " ", ""))] = i
			}
			if _, ok := column["account"]; !ok {
				return errors.New("the first line names no column Account, as sacctmgr show assoc -P writes it")
			}
			if !slices.ContainsFunc(cells, func(name string) bool { return strings.HasPrefix(strings.ToLower(name), "par") }) {
				p.note("there is no column ParentName: all accounts are directly below the root")
			}
			continue
		}
		for name, i := range column {
			if i < len(cells) && cells[i] != "" && !slices.Contains(readColumns, name) {
				unread[name]++
			}
		}
		cell := func(names ...string) string {
			for _, name := range names {
				if i, ok := column[name]; ok && i < len(cells) {
					return cells[i]
				}
			}
			return ""
		}
		account, share := cell("account"), cell("share", "fairshare")
		switch {
		case account == "":
			continue
		case cell("user") != "":
			if share != "1" && share != "" || cell("grptresmins") != "" || cell("grptres") != "" {
				users++
			}
			continue
		case seen[account]:
			p.note("account %s is there twice, of several clusters or partitions: the first one is taken", account)
			continue
		}
		seen[account] = true
		parent := cell("parname", "parentname")
		if parent == rootAccount {
			parent = ""
		}
		if account != rootAccount {
			p.account(account, parent, share, cell("grptres"))
		} else if limit := cell("grptres"); limit != "" {
			p.note("account root: GrpTRES %s is not carried over: the nodes are the limit of the cluster", limit)
		}
		p.minutes(account, cell("grptresmins"), reset)
	}
	if users > 0 {
		p.note("shares and limits of users are not carried over (%d): Queue.owners states weights, budgets are those of queues", users)
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		p.note("column %s is not carried over, which %d of the associations state", name, unread[name])
	}
	return lines.Err()
}

// rootAccount is the account above all others.
const rootAccount = "root"

// readColumns are those that are read, and those that limit nothing.
var readColumns = []string{
	"account", "user", "parname", "parentname", "share", "fairshare", "grptresmins", "grptres", "cluster", "partition", "id", "lft", "rgt",
	"lineage", "comment",
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

// periodOf returns when the period began that contains a time.
func periodOf(reset string, now time.Time) time.Time {
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch reset {
	case "DAILY":
		return day
	case "WEEKLY":
		return day.AddDate(0, 0, -int(day.Weekday()))
	case "MONTHLY":
		return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	case "QUARTERLY":
		return time.Date(now.Year(), now.Month()-(now.Month()-1)%3, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(now.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
}
