package volcano

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storage "k8s.io/component-helpers/storage/volume"
	"pgregory.net/rapid"
)

func TestClaimsGetTheVolumesThatKubernetesGivesThem(t *testing.T) {
	require.Equal(t, []string{storage.AnnBindCompleted, storage.AnnSelectedNode, storage.NotSupportedProvisioner},
		[]string{bindCompleted, selectedNode, noProvisioner})
	rapid.Check(t, func(t *rapid.T) {
		c := drawClaim(t)
		var volumes []*corev1.PersistentVolume
		chosen := map[string]*corev1.PersistentVolume{}
		for i := range rapid.SampledFrom([]int{0, 1, 2, 4, 6}).Draw(t, "volumes") {
			pv := drawVolume(t, fmt.Sprint("v", i))
			require.Equal(t, storage.GetPersistentVolumeClass(pv), volumeClass(pv))
			require.Equal(t, storage.IsVolumeBoundToClaim(pv, c), keptFor(pv, c))
			volumes = append(volumes, pv)
			if oneIn(t, 6) {
				chosen[pv.Name] = pv
			}
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
		require.Equal(t, storage.GetPersistentVolumeClaimClass(c), claimClass(c))
		want, wantErr := storage.FindMatchingVolume(c, volumes, n, chosen, true, true)
		got, err := matching(c, volumes, n, chosen)
		require.Equal(t, wantErr == nil, err == nil, "%v and %v", wantErr, err)
		require.Same(t, want, got)
	})
}

// oneIn draws true once in n times. SampledFrom draws evenly, ranges of numbers prefer their bounds.
func oneIn(t *rapid.T, n int) bool {
	return rapid.SampledFrom(append(make([]bool, n-1), true)).Draw(t, "one in")
}

// rarely draws one of the others now and then, so that most volumes match but for one thing.
func rarely[T any](t *rapid.T, mostly T, others ...T) T {
	if oneIn(t, 8) {
		return rapid.SampledFrom(others).Draw(t, "other")
	}
	return mostly
}

func drawMeta(t *rapid.T, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: "x", UID: "1", Labels: rarely(t, map[string]string{"tier": "one"}, nil)}
	if class := rarely(t, nil, new("fast"), new("")); class != nil {
		m.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: *class}
	}
	return m
}

func drawStorage(t *rapid.T, mostly string) corev1.ResourceList {
	if oneIn(t, 8) {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(rarely(t, mostly, "0", "1Gi", "1G", "1025Mi"))}
}

func drawAccess(t *rapid.T) []corev1.PersistentVolumeAccessMode {
	once, both := []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, []corev1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadWriteOnce"}
	return rarely(t, once, nil, both)
}

func drawMode(t *rapid.T) *corev1.PersistentVolumeMode {
	return rarely(t, nil, new(corev1.PersistentVolumeFilesystem), new(corev1.PersistentVolumeBlock))
}

func drawClaim(t *rapid.T) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: drawMeta(t, "c"), Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: rarely(t, new("fast"), nil, new("")), AccessModes: drawAccess(t), VolumeMode: drawMode(t),
		VolumeAttributesClassName: rarely(t, nil, new(""), new("gold")),
	}}
	c.Spec.Resources.Requests = drawStorage(t, "1024Mi")
	if oneIn(t, 3) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "tier", Operator: rarely[metav1.LabelSelectorOperator](t, "Exists", "DoesNotExist", "Sometimes"),
		}}}
	}
	return c
}

func drawVolume(t *rapid.T, name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: drawMeta(t, name), Spec: corev1.PersistentVolumeSpec{
		Capacity: drawStorage(t, "2Gi"), AccessModes: drawAccess(t), StorageClassName: rarely(t, "fast", "", "slow"),
		VolumeMode: drawMode(t), VolumeAttributesClassName: rarely(t, nil, new(""), new("gold")),
	}, Status: corev1.PersistentVolumeStatus{Phase: rarely(t, corev1.VolumeAvailable, corev1.VolumeReleased)}}
	pv.DeletionTimestamp = rarely(t, nil, &metav1.Time{})
	if oneIn(t, 4) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{
			Name: rarely(t, "c", "d"), Namespace: rarely(t, "x", "y"), UID: rarely[types.UID](t, "1", "", "2"),
		}
	}
	if oneIn(t, 2) {
		pv.Spec.NodeAffinity = rarely(t, zoned("In", "a", "b"), &corev1.VolumeNodeAffinity{}, zoned("In", "b"), zoned("Sometimes", "a"))
	}
	return pv
}

// zoned is the affinity of a volume for nodes in zones.
func zoned(operator corev1.NodeSelectorOperator, zones ...string) *corev1.VolumeNodeAffinity {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: operator, Values: zones}}}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
}
