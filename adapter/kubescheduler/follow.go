package kubescheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha1 "k8s.io/api/scheduling/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
)

// podGroups are those of the project scheduler-plugins.
var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// follow keeps a model as the API server says. Workloads and PodGroups are followed where they are served.
func follow(ctx context.Context, handle fwk.Handle, m *model) error {
	factory := handle.SharedInformerFactory()
	queueOf := func(n *corev1.Namespace) { m.setNamespace(n.Name, n.Labels[m.label]) }
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		factory.Core().V1().Pods().Informer():       on(m.setPod, func(p *corev1.Pod) { m.removePod(p.UID) }),
		factory.Core().V1().Nodes().Informer():      on(m.setNode, func(n *corev1.Node) { m.removeNode(n.Name) }),
		factory.Core().V1().Namespaces().Informer(): on(queueOf, func(*corev1.Namespace) {}),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	served := func(group string, resource string) bool {
		list, err := handle.ClientSet().Discovery().ServerResourcesForGroupVersion(group)
		if err != nil {
			return false
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == resource {
				return true
			}
		}
		return false
	}
	if served(schedulingv1alpha1.SchemeGroupVersion.String(), "workloads") {
		handler := on(func(w *schedulingv1alpha1.Workload) {
			for group, least := range minimumsOf(w) {
				m.setGang(workloadID(w.Namespace, w.Name, group), least)
			}
		}, func(w *schedulingv1alpha1.Workload) {
			for group := range minimumsOf(w) {
				m.setGang(workloadID(w.Namespace, w.Name, group), -1)
			}
		})
		if _, err := factory.Scheduling().V1alpha1().Workloads().Informer().AddEventHandler(handler); err != nil {
			return err
		}
	}
	if served(podGroups.GroupVersion().String(), podGroups.Resource) {
		return followGroups(ctx, handle, m)
	}
	return nil
}

func followGroups(ctx context.Context, handle fwk.Handle, m *model) error {
	clients, err := dynamic.NewForConfig(handle.KubeConfig())
	if err != nil {
		return err
	}
	groups := dynamicinformer.NewDynamicSharedInformerFactory(clients, 0)
	_, err = groups.ForResource(podGroups).Informer().AddEventHandler(on(func(g *unstructured.Unstructured) {
		least, _, err := unstructured.NestedInt64(g.Object, "spec", "minMember")
		if err != nil || least < 1 {
			least = 1
		}
		m.setGang(groupID(g.GetNamespace(), g.GetName()), int(least))
	}, func(g *unstructured.Unstructured) { m.setGang(groupID(g.GetNamespace(), g.GetName()), -1) }))
	groups.Start(ctx.Done())
	return err
}

// on returns a handler of one type.
func on[T any](set, remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if typed, ok := object.(T); ok {
				set(typed)
			}
		},
		UpdateFunc: func(_, object any) {
			if typed, ok := object.(T); ok {
				set(typed)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if typed, ok := object.(T); ok {
				remove(typed)
			}
		},
	}
}
