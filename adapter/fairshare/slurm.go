package fairshare

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

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
	if err := p.associations(tables, settings["clustername"], strings.ToUpper(settings["priorityusageresetperiod"])); err != nil {
		return err
	}
	if len(tables) == 0 {
		p.note("no associations: queues and budgets come from the output of %s", associationsOf)
	}
	return nil
}

// associationsOf is the command whose output is read.
const associationsOf = "sacctmgr show assoc -P format=Cluster,Account,ParentName,User,Share,GrpTRESMins,GrpTRES"

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
