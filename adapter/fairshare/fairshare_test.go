package fairshare_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/fairshare"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var now = time.Date(2026, time.November, 24, 15, 0, 0, 0, time.UTC)

func read(t *testing.T, system fairshare.System, texts ...string) (*fairshare.Proposal, *apportionv1.Fair) {
	t.Helper()
	var sources []fairshare.Source
	for _, text := range texts {
		sources = append(sources, fairshare.Source{Name: "f", Data: []byte(text)})
	}
	p, err := fairshare.Read(system, sources, now)
	require.NoError(t, err)
	plugins := p.Policy.GetTiers()[0].GetPlugins()
	return p, plugins[len(plugins)-1].GetFair()
}

func TestTimesOfSlurmAreRead(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"": 7 * day, "PriorityDecayHalfLife=7-0": 7 * day, "PRIORITYDECAYHALFLIFE=2-12:30": 60*time.Hour + 30*time.Minute,
		"PriorityDecayHalfLife=2880": 2 * day, "PriorityDecayHalfLife=72:00:00": 3 * day, "PriorityDecayHalfLife=0": 128 * day,
		"PriorityDecayHalfLife=soon": 7 * day, "PriorityDecayHalfLife=365-0": 128 * day,
		"PriorityDecayHalfLife=30:30": 30*time.Minute + 30*time.Second,
	} {
		p, _ := read(t, fairshare.Slurm, "ClusterName=c\n"+text+" # comment\n")
		// A half-life is whole epochs.
		require.InDelta(t, want, p.HalfLife, float64(p.Epoch)/2, text)
		require.Zero(t, p.HalfLife%p.Epoch)
	}
}

func TestPricesKeepTheirRatios(t *testing.T) {
	for weights, want := range map[string]map[string]uint32{
		"CPU=1.0,Mem=0.25G,GRES/gpu=16.0": {"cpu": 512, "memory": 125, "nvidia.com/gpu": 8192000},
		"CPU=1,Mem=1":                     {"cpu": 1, "memory": 1000},
		"GRES/gpu=3":                      {"nvidia.com/gpu": 3},
		"node=1":                          nil,
		"CPU=1e9,Mem=-1":                  nil,
		"CPU=0":                           nil,
	} {
		_, fair := read(t, fairshare.Slurm, "PartitionName=p TRESBillingWeights=\""+weights+"\"\n")
		var got map[string]uint32
		for _, price := range fair.GetMemory().GetPrices().GetPrices() {
			if got == nil {
				got = map[string]uint32{}
			}
			got[price.GetDimension()] = price.GetAmount()
		}
		require.Equal(t, want, got, weights)
	}
	_, fair := read(t, fairshare.Slurm, "PartitionName=p TRESBillingWeights=CPU=0.000001,GRES/gpu=99999999\n")
	require.Len(t, fair.GetMemory().GetPrices().GetPrices(), 2)
	require.Equal(t, uint32(1), fair.GetMemory().GetPrices().GetPrices()[0].GetAmount())
}

func TestABudgetBeginsWithThePeriodOfSlurm(t *testing.T) {
	const accounts = "Account|Par Name|User|Share|GrpTRESMins\nvision|root||5|cpu=6000,mem=122880,energy=4\n"
	for reset, want := range map[string]string{
		"NONE": "2026-01-01", "DAILY": "2026-11-24", "WEEKLY": "2026-11-22",
		"monthly": "2026-11-01", "QUARTERLY": "2026-10-01", "YEARLY": "2026-01-01",
	} {
		p, _ := read(t, fairshare.Slurm, "PriorityUsageResetPeriod="+reset+"\n", accounts)
		require.Len(t, p.Budgets, 1)
		require.Equal(t, want, p.Budgets[0].Begin.Format(time.DateOnly), reset)
		require.Equal(t, map[string]string{"cpu": "100", "memory": "2048Mi"}, p.Budgets[0].Hours)
		require.Equal(t, []fairshare.Queue{{Name: "vision", Weight: 5}}, p.Queues)
	}
}

func TestWithoutPastUsageThePolicyHasNoMemory(t *testing.T) {
	for text, system := range map[string]fairshare.System{
		"kind: SchedulingShard\nspec: {kValue: 1}\n":                                             fairshare.KAI,
		"kind: Configuration\n":                                                                  fairshare.Kueue,
		"kind: Configuration\nadmissionFairSharing: {usageHalfLifeTime: 0s}\n":                   fairshare.Kueue,
		"{\"kind\": \"Configuration\", \"admissionFairSharing\": {\"usageHalfLifeTime\": \"\"}}": fairshare.Kueue,
	} {
		p, fair := read(t, system, text)
		require.Zero(t, p.HalfLife)
		require.Nil(t, fair.GetMemory())
		require.NotEmpty(t, p.Notes)
	}
}

func TestTheGainOfKAIIsItsKValue(t *testing.T) {
	for k, want := range map[string]uint32{
		"kValue: 0.5, ": 32768, "kValue: 0, ": 0, "": 65536, "kValue: 1e9, ": 255 << 16, "kValue: -3, ": 0,
	} {
		p, fair := read(t, fairshare.KAI, "kind: SchedulingShard\nspec: {"+k+"usageDBConfig: {usageParams: {halfLifePeriod: 10m}}}\n")
		require.Equal(t, want, fair.GetMemory().GetGain())
		require.Equal(t, uint32(1), fair.GetMemory().GetPower())
		require.Equal(t, []time.Duration{10 * time.Minute, time.Minute}, []time.Duration{p.HalfLife, p.Epoch})
	}
}

func TestFilesThatLackTheSettingsAreErrors(t *testing.T) {
	for _, c := range []struct {
		system fairshare.System
		texts  []string
		want   string
	}{
		{fairshare.Slurm, []string{"Account|User\n"}, "slurm.conf is missing"},
		{fairshare.Slurm, []string{"ClusterName=c\n", "User|Share\nx|1\n"}, "f: the first line names no column Account"},
		{fairshare.KAI, []string{"kind: Queue"}, "no SchedulingShard"},
		{fairshare.KAI, []string{"kind: SchedulingShard\nspec: {kValue: much}"}, "f: "},
		{fairshare.Kueue, []string{"kind: ConfigMap"}, "no Configuration of Kueue"},
		{fairshare.Kueue, []string{"kind: ["}, "f: "},
		{"pbs", []string{""}, `no system "pbs"`},
	} {
		var sources []fairshare.Source
		for _, text := range c.texts {
			sources = append(sources, fairshare.Source{Name: "f", Data: []byte(text)})
		}
		_, err := fairshare.Read(c.system, sources, now)
		require.ErrorContains(t, err, c.want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("PriorityDecayHalfLife=1-0\nPartitionName=p TRESBillingWeights=CPU=1,Mem=2G\n",
		"Account|Par Name|User|Share|GrpTRESMins\na|root||1|cpu=5\n")
	f.Add("kind: SchedulingShard\nspec: {kValue: 1, usageDBConfig: {usageParams: {halfLifePeriod: 1h}}}\n",
		"kind: Queue\nspec: {resources: {gpu: {quota: 1}}}\n")
	f.Add("kind: Configuration\nadmissionFairSharing: {usageHalfLifeTime: 1h, resourceWeights: {cpu: 2}}\n", "")
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, system := range fairshare.Systems() {
			p, err := fairshare.Read(system, []fairshare.Source{{Data: []byte(first)}, {Data: []byte(second)}}, now)
			if err == nil && p.HalfLife > 0 {
				require.Zero(t, p.HalfLife%p.Epoch)
				require.LessOrEqual(t, p.HalfLife/p.Epoch, time.Duration(512))
			}
		}
	})
}

func TestAccountsKeepTheirParentsLimitsAndPartsOfAnHour(t *testing.T) {
	p, _ := read(t, fairshare.Slurm, "ClusterName=c\nInclude /etc/slurm/nodes.conf\n",
		"Account|ParentName|User|Share|GrpTRESMins|GrpTRES|MaxJobs|QOS\n"+
			"root|||||cpu=9||\n"+
			"rootlab|root||20||cpu=64,mem=4000,gres/gpu=16,node=3|5|normal\n"+
			"cells|rootlab||5|gres/gpu=30,cpu=90,mem=1||7|normal\n"+
			"cells|rootlab|ann|1||cpu=1||\n"+
			"My_Lab|gone||1||mem=2T||\n")
	require.Equal(t, []fairshare.Queue{
		{Name: "rootlab", Weight: 20, Capability: map[string]string{"cpu": "64", "memory": "4000Mi", "nvidia.com/gpu": "16"}},
		{Name: "My_Lab", Parent: "gone", Weight: 1, Capability: map[string]string{"memory": "2Ti"}},
		{Name: "cells", Parent: "rootlab", Weight: 5},
	}, p.Queues)
	require.Equal(t, map[string]string{"nvidia.com/gpu": "0.5", "cpu": "1.5", "memory": "17Ki"}, p.Budgets[0].Hours)
	for _, want := range []string{
		"f: the file of Include /etc/slurm/nodes.conf is not read: give it with -f",
		"account root: GrpTRES cpu=9 is not carried over: the nodes are the limit of the cluster",
		"account rootlab: GrpTRES node=3 is not carried over",
		"column maxjobs is not carried over, which 2 of the associations state",
		"column qos is not carried over, which 2 of the associations state",
		"shares and limits of users are not carried over (1): Queue.owners states weights, budgets are those of queues",
		`queue "My_Lab": Kubernetes takes no such name, only lower case letters, digits, - and .: give it another one in all files that are ` +
			`written, and import its usage with --path My_Lab=NAME/…/root`,
		"queue My_Lab: its parent gone is in none of the files, so that nothing is divided to it: add it",
	} {
		require.Contains(t, p.Notes, want)
	}
	p, _ = read(t, fairshare.Slurm, "ClusterName=c\n", "Account|User|Share\na||1\n")
	require.Contains(t, p.Notes, "there is no column ParentName: all accounts are directly below the root")
}

func TestAccountsAreThoseOfTheClusterOfSlurmConf(t *testing.T) {
	const head = "Cluster|Account|ParentName|User|Share\n"
	two := head + "east|root|||1\neast|a|root||3\nwest|root|||1\nwest|a|root||70\nwest|b|root||1\n"
	for name, c := range map[string]struct {
		conf   string
		tables []string
		want   []fairshare.Queue
		note   string
		fault  string
	}{
		"of two the one that is named": {
			"ClusterName=West\n",
			[]string{two},
			[]fairshare.Queue{{Name: "a", Weight: 70}, {Name: "b", Weight: 1}},
			"cluster east is left out (2 associations): slurm.conf is of West", "",
		},
		"of two none is named": {
			"PriorityType=priority/multifactor\n",
			[]string{two},
			nil, "",
			"several clusters, east and west, and slurm.conf names none (ClusterName): give the output of sacctmgr",
		},
		"another one":        {"ClusterName=c\n", []string{two}, nil, "", "of cluster east, west, and slurm.conf is of c"},
		"one, none is named": {"A=b\n", []string{head + "east|a|root||3\n"}, []fairshare.Queue{{Name: "a", Weight: 3}}, "", ""},
		"without the column": {
			"ClusterName=west\n",
			[]string{"Account|Share\na|3\na|70\n"},
			nil, "",
			"account a is there twice, as if of two clusters: give the output of sacctmgr show assoc -P format=Cluster,",
		},
		"two tables": {"ClusterName=west\n", []string{two, head + "west|a|root||2\n"}, nil, "", "f: account a is there twice"},
		"a mark of order": {
			"ClusterName=west\n", []string{"\ufeff" + head + "west|a|root||3\r\n"}, []fairshare.Queue{{Name: "a", Weight: 3}}, "", "",
		},
		"one for each one": {
			"ClusterName=west\n",
			[]string{head + "east|a|root||3\n", head + "west|a|root||2\n"},
			[]fairshare.Queue{{Name: "a", Weight: 2}},
			"", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sources := []fairshare.Source{{Name: "c", Data: []byte(c.conf)}}
			for _, table := range c.tables {
				sources = append(sources, fairshare.Source{Name: "f", Data: []byte(table)})
			}
			p, err := fairshare.Read(fairshare.Slurm, sources, now)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, p.Queues)
			if c.note != "" {
				require.Contains(t, p.Notes, c.note)
			}
		})
	}
}

func TestQueuesThatNothingReadsAreNamed(t *testing.T) {
	p, _ := read(t, fairshare.Slurm, "ClusterName=c\n",
		"Account|ParentName|User|Share\nx|y||1\ny|x||1\nself|self||1\nbelow|x||0\nlarge|root||70000\n")
	above, weight := "queue %s is above itself, so that nothing is divided to it: give it another parent",
		"queue %s: Volcano takes weights from 1 to 65535, not %d: state another one"
	require.Subset(t, p.Notes, []string{
		fmt.Sprintf(above, "x"), fmt.Sprintf(above, "y"), fmt.Sprintf(above, "self"),
		fmt.Sprintf(weight, "below", 0), fmt.Sprintf(weight, "large", 70000),
	})
	require.NotContains(t, p.Notes, fmt.Sprintf(above, "below"))
}

func TestOtherOutputsOfSlurmAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare\nroot|||1.0|0|1.0|\n":                            "output of sshare",
		"             Account       User  RawShares  NormShares\n-------------------- ---------- ----------\nroot\n":        "output of sshare",
		"   Cluster    Account       User  Share\n---------- ---------- ---------- ---------\n  c  root\n":                  "table for people",
		"# To edit this file start with a cluster line for the new cluster\nCluster - 'tux':Fairshare=1\nParent - 'root'\n": "output of sacctmgr dump",
	} {
		_, err := fairshare.Read(fairshare.Slurm, []fairshare.Source{{Name: "c", Data: []byte("ClusterName=c\n")}, {Name: "f", Data: []byte(text)}}, now)
		require.ErrorContains(t, err, "f: this is")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "sacctmgr show assoc -P")
	}
}

func TestWhatKAIHasBesidesIsNamed(t *testing.T) {
	p, _ := read(t, fairshare.KAI, "apiVersion: kai.scheduler/v1\nkind: SchedulingShard\nmetadata: {name: s}\nspec: {minRuntime: {reclaimMinRuntime: 1h}}\n",
		"apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec: {priority: 90, preemptMinRuntime: 4h, reclaimMinRuntime: 1h}\n"+
			"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: v}\n---\nkind: PodGroup\nmetadata: {name: g}\n")
	require.Len(t, p.Queues, 1)
	require.Equal(t, int32(90), p.Queues[0].Priority)
	for _, want := range []string{
		"SchedulingShard s: minRuntime is not carried over", "Queue q: preemptMinRuntime is not carried over", "Queue q: reclaimMinRuntime is not carried over",
		"Queue v of scheduling.volcano.sh/v1beta1 is left out: it is not one of KAI", "PodGroup g is not read",
	} {
		require.Contains(t, p.Notes, want)
	}
	gang := p.Policy.GetTiers()[0].GetPlugins()[1]
	require.NotNil(t, gang.GetGang())
	require.Equal(t, []apportionv1.Decision{apportionv1.Decision_DECISION_RECLAIMABLE, apportionv1.Decision_DECISION_PREEMPTABLE}, gang.GetDisabledDecisions())
}

func TestResourcesOfKAIThatCannotBeReadAreNamed(t *testing.T) {
	queue := func(resources string) string {
		return "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: q}\nspec: {resources: {" + resources + "}}\n"
	}
	const shard = "kind: SchedulingShard\nmetadata: {name: s}\n"
	p, _ := read(t, fairshare.KAI, shard, queue("gpu: {quota: 2, limit: 1e17}, nvme: {quota: 3}"))
	require.Equal(t, map[string]string{"nvidia.com/gpu": "2"}, p.Queues[0].Deserved)
	require.Empty(t, p.Queues[0].Capability)
	require.Subset(t, p.Notes, []string{
		"queue q: nvme is no resource of KAI's queues, and is left out", "queue q: the limit of gpu is beyond all clusters, and is left out",
	})
	_, err := fairshare.Read(fairshare.KAI, []fairshare.Source{{Name: "f", Data: []byte(shard + "---\n" +
		queue(`gpu: {quota: two, overQuotaWeight: []}, cpu: {limit: "8"}`))}}, now)
	require.EqualError(t, err, "queue q: spec.resources.cpu.limit: \"8\" is not a number\n"+
		"queue q: spec.resources.gpu.quota: \"two\" is not a number\nqueue q: spec.resources.gpu.overQuotaWeight: [] is not a number")
}
