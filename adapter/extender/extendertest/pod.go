package extendertest

import "strings"

// pod returns a pod as the API server keeps it.
func (p *pusher) pod(i int, node string) string {
	name, job := podName(i), jobName(i/podsOfJob)
	head := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"` + podUID(i) +
		`","creationTimestamp":"2026-01-02T03:07:00Z","labels":{"volcano.sh/task-spec":"worker"},"annotations":{"scheduling.k8s.io/group-name":"` + job + `"`
	phase, nodeName := "Pending", ""
	if node != "" {
		phase, nodeName = "Running", `"nodeName":"`+node+`",`
	}
	if p.shape.Lean {
		return head + `}},"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"}}}],` +
			nodeName + `"schedulerName":"volcano"},"status":{"phase":"` + phase + `"}}`
	}
	return head + strings.NewReplacer("$NAME", name, "$JOB", job, "$NODE", nodeName, "$PHASE", phase).Replace(clusterPod)
}

// clusterPod is the rest of a pod of a Volcano job in a cluster: environment, volumes, probes, tolerations, what controllers noted in
// managedFields, and the state of its container.
const clusterPod = `,"volcano.sh/job-name":"$JOB","volcano.sh/job-version":"0","volcano.sh/queue-name":"research","volcano.sh/template-uid":"$JOB-worker",` +
	`"volcano.sh/retry-count":"0","volcano.sh/description":"fine-tuning of a \u003clarge\u003e model, step 3 of 7 \u0026 nothing else"},` +
	`"ownerReferences":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"$JOB","uid":"9c0b3f1e-6f7a-4f0e-8d35-000000000000","controller":true,` +
	`"blockOwnerDeletion":true}],"managedFields":[` +
	`{"manager":"vc-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:07:00Z","fieldsType":"FieldsV1","fieldsV1":` +
	`{"f:metadata":{"f:annotations":{".":{},"f:scheduling.k8s.io/group-name":{},"f:volcano.sh/job-name":{},"f:volcano.sh/job-version":{},` +
	`"f:volcano.sh/queue-name":{},"f:volcano.sh/task-spec":{},"f:volcano.sh/template-uid":{}},"f:labels":{".":{},"f:volcano.sh/job-name":{},` +
	`"f:volcano.sh/job-namespace":{},"f:volcano.sh/queue-name":{},"f:volcano.sh/task-spec":{}},"f:ownerReferences":{".":{},` +
	`"k:{\"uid\":\"9c0b3f1e-6f7a-4f0e-8d35-000000000000\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:args":{},"f:command":{},` +
	`"f:env":{".":{},"k:{\"name\":\"MASTER_ADDR\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"MASTER_PORT\"}":{".":{},"f:name":{},"f:value":{}},` +
	`"k:{\"name\":\"NCCL_DEBUG\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"WORLD_SIZE\"}":{".":{},"f:name":{},"f:value":{}}},` +
	`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":29500,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},` +
	`"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{},"f:nvidia.com/gpu":{}},"f:requests":{".":{},"f:cpu":{},` +
	`"f:memory":{},"f:nvidia.com/gpu":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":{".":{},` +
	`"k:{\"mountPath\":\"/data\"}":{".":{},"f:mountPath":{},"f:name":{}},"k:{\"mountPath\":\"/dev/shm\"}":{".":{},"f:mountPath":{},"f:name":{}}}}},` +
	`"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{}}}},` +
	`{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:09:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":` +
	`{"f:conditions":{"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},` +
	`"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},` +
	`"f:podIPs":{".":{},"k:{\"ip\":\"10.1.2.3\"}":{".":{},"f:ip":{}}},"f:startTime":{}}},"subresource":"status"}]},` +
	`"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"$JOB-data"}},{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"8Gi"}},` +
	`{"name":"kube-api-access-x7k2p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":` +
	`{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":` +
	`{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"main",` +
	`"image":"registry.example.internal/research/trainer:2026.01.02-3f9c2a1","command":["/bin/bash","-c"],` +
	`"args":["torchrun --nnodes=$WORLD_SIZE --nproc_per_node=1 --rdzv_backend=c10d train.py --config /data/config.yaml"],` +
	`"ports":[{"name":"master","containerPort":29500,"protocol":"TCP"}],"env":[{"name":"MASTER_ADDR","value":"$JOB-worker-0.$JOB"},` +
	`{"name":"MASTER_PORT","value":"29500"},{"name":"NCCL_DEBUG","value":"INFO"},{"name":"WORLD_SIZE","value":"10"},{"name":"POD_NAME","valueFrom":` +
	`{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"},"requests":` +
	`{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"}},"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"shm","mountPath":"/dev/shm"},` +
	`{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],` +
	`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"OnFailure",` +
	`"terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","serviceAccount":"default",$NODE"securityContext":{},` +
	`"hostname":"$NAME","subdomain":"$JOB","schedulerName":"volcano","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists",` +
	`"effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",` +
	`"tolerationSeconds":300}],"priorityClassName":"research","priority":100,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},` +
	`"status":{"phase":"$PHASE","conditions":[{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:08:00Z"}],` +
	`"startTime":"2026-01-02T03:08:00Z","qosClass":"Guaranteed"}}`
