package kubescheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (g *generator) selector(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{diskLabel: one(g, disks...)}
	if g.chance(40) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: one(g, zones...)}
	}
}

func (g *generator) nodeAffinity(p *corev1.Pod) {
	terms := []corev1.NodeSelectorTerm{g.nodeTerm()}
	if g.chance(40) {
		terms = append(terms, g.nodeTerm())
	}
	affinity(p).NodeAffinity = &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	if g.chance(15) {
		operator := corev1.NodeSelectorOpIn
		if g.chance(50) {
			operator = corev1.NodeSelectorOpNotIn
		}
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: operator, Values: []string{one(g, g.Nodes...).Name}},
		}}
	}
	all := []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: some(g, zones...)},
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{one(g, zones...)}},
		{Key: diskLabel, Operator: corev1.NodeSelectorOpExists},
		{Key: diskLabel, Operator: corev1.NodeSelectorOpDoesNotExist},
		{Key: diskLabel, Operator: corev1.NodeSelectorOpNotIn, Values: some(g, disks...)},
		{Key: rankLabel, Operator: corev1.NodeSelectorOpGt, Values: []string{one(g, "1", "3")}},
		{Key: rankLabel, Operator: corev1.NodeSelectorOpLt, Values: []string{one(g, "3", "5")}},
	}
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{one(g, all...)}}
	if g.chance(30) {
		term.MatchExpressions = append(term.MatchExpressions, one(g, all...))
	}
	return term
}

func (g *generator) podAffinity(p *corev1.Pod) {
	affinity(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms(p)}
}

func (g *generator) podAntiAffinity(p *corev1.Pod) {
	affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms(p)}
}

// terms returns one or two terms of a pod's affinity or anti-affinity.
func (g *generator) terms(p *corev1.Pod) []corev1.PodAffinityTerm {
	terms := []corev1.PodAffinityTerm{g.term(p)}
	if g.chance(30) {
		terms = append(terms, g.term(p))
	}
	return terms
}

func (g *generator) term(p *corev1.Pod) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{
		LabelSelector: g.labelSelector(p),
		TopologyKey:   one(g, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, corev1.LabelHostname, diskLabel),
	}
	if g.chance(25) {
		t.Namespaces = some(g, spaces...)
	}
	if g.chance(25) {
		t.NamespaceSelector = one(g, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{teamLabel: "ml"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"gold"}},
			}})
	}
	if t.LabelSelector != nil && g.chance(20) {
		if g.chance(70) {
			t.MatchLabelKeys = []string{releaseLabel}
		} else {
			t.MismatchLabelKeys = []string{releaseLabel}
		}
	}
	return t
}

// labelSelector returns a selector of pods: often one that selects the pod itself, sometimes one that selects all pods or none.
func (g *generator) labelSelector(p *corev1.Pod) *metav1.LabelSelector {
	app := map[string]string{appLabel: one(g, apps...)}
	if g.chance(40) {
		app[appLabel] = p.Labels[appLabel]
	}
	switch g.IntN(12) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchLabels: with(app, versionLabel, "v1")}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: appLabel, Operator: metav1.LabelSelectorOpIn, Values: some(g, apps...)},
		}}
	case 4:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: versionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"v2"}},
		}}
	case 5:
		return &metav1.LabelSelector{MatchLabels: app, MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: versionLabel, Operator: one(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)},
		}}
	}
	return &metav1.LabelSelector{MatchLabels: app}
}

// spread sets one or two constraints of a pod's topology spread, and sometimes one that may be broken.
func (g *generator) spread(p *corev1.Pod) {
	zone := []string{corev1.LabelTopologyZone}
	keys := [][]string{zone, zone, {corev1.LabelHostname}, {diskLabel}, {corev1.LabelTopologyZone, corev1.LabelHostname}}
	for _, key := range one(g, keys...) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, g.spreadConstraint(p, key))
	}
	if g.chance(10) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: rankLabel, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: g.labelSelector(p),
		})
	}
}

func (g *generator) spreadConstraint(p *corev1.Pod, key string) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: one[int32](g, 1, 1, 1, 2), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.labelSelector(p),
	}
	if g.chance(25) {
		domains := int32(1 + g.IntN(5))
		c.MinDomains = &domains
	}
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	c.NodeAffinityPolicy = one(g, nil, nil, &honor, &ignore)
	c.NodeTaintsPolicy = one(g, nil, nil, &honor, &ignore)
	if c.LabelSelector != nil && g.chance(25) {
		c.MatchLabelKeys = []string{releaseLabel}
	}
	return c
}

// ports lets a pod use one or two ports of its node.
func (g *generator) ports(p *corev1.Pod) {
	protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	c := &p.Spec.Containers[0]
	if g.chance(10) { // The API server sets the ports of the node.
		p.Spec.HostNetwork = true
		c.Ports = []corev1.ContainerPort{{ContainerPort: one[int32](g, 8080, 9090), Protocol: one(g, protocols...)}}
		return
	}
	c.Ports = []corev1.ContainerPort{{
		ContainerPort: 80, HostPort: one[int32](g, 8080, 8080, 9090), Protocol: one(g, protocols...),
		HostIP: one(g, "", "", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
	}}
	if g.chance(20) {
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 81, HostPort: 7070, Protocol: one(g, protocols...)})
	}
}
