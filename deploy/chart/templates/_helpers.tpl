{{- define "apportion.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "apportion.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "apportion.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "apportion.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "apportion.selector" -}}
app.kubernetes.io/name: {{ include "apportion.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "apportion.labels" -}}
{{ include "apportion.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/component: server
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Pods of the audit are not pods of the server: the selector must not match them. */ -}}
{{- define "apportion.auditLabels" -}}
app.kubernetes.io/name: {{ include "apportion.name" . }}-audit
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/component: audit
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "apportion.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "apportion.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "apportion.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The name by which requests know a policy: its file's without the ending. */ -}}
{{- define "apportion.policyName" -}}
{{- regexReplaceAll "\\.[^.]*$" . "" -}}
{{- end -}}

{{- /* Whether JSON is served: by itself, or with the page of the cluster that is followed. */ -}}
{{- define "apportion.http" -}}
{{- or .Values.http.enabled .Values.follow.enabled -}}
{{- end -}}

{{- /* What the chart itself writes into the configuration file. */ -}}
{{- define "apportion.owned" -}}
listen: ["0.0.0.0:7171"]
admin:
  listen: "0.0.0.0:7172"
{{- if eq (include "apportion.http" .) "true" }}
http:
  listen: "0.0.0.0:7174"
  {{- if .Values.follow.enabled }}
  ui: true
  {{- end }}
{{- end }}
{{- if .Values.follow.enabled }}
follow:
  enabled: true
{{- end }}
{{- if .Values.ledger.enabled }}
{{- if not .Values.follow.enabled }}
{{- fail "ledger.enabled: the ledger is about the cluster that the server follows (follow.enabled: true)" }}
{{- end }}
{{- if or .Values.autoscaling.enabled (ne (int .Values.replicas) 1) }}
{{- fail "ledger.enabled: one replica alone can use the file of the ledger (replicas: 1, no autoscaling)" }}
{{- end }}
ledger:
  file: /var/lib/apportion/usage.ledger
  {{- if .Values.ledger.budgets }}
  budgets: /etc/apportion/budgets/budgets.yaml
  {{- end }}
  {{- if .Values.ledger.copies.claim }}
  copy: /var/lib/apportion-copies/{{ include "apportion.fullname" . }}.ledger
  {{- end }}
{{- end }}
{{- with .Values.extender }}
{{- if .schedulers }}
{{- if or $.Values.autoscaling.enabled (ne (int $.Values.replicas) 1) }}
{{- fail "extender.schedulers: a scheduler is answered by one replica alone (replicas: 1, no autoscaling)" }}
{{- end }}
extender:
  listen: "0.0.0.0:7173"
  schedulers: {{- toYaml .schedulers | nindent 4 }}
  {{- with .shadow }}
  shadow: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .users }}
  users: /etc/apportion/users/users
  {{- end }}
  {{ ternary "tls" "plaintext" .tls }}: true
{{- end }}
{{- end }}
{{- with .Values.policies }}
policies:
  {{- range $file, $text := . }}
  {{ include "apportion.policyName" $file }}: /etc/apportion/policies/{{ $file }}
  {{- end }}
{{- end }}
tls:
  {{- if .Values.tls.secret }}
  certificate: /etc/apportion/tls/tls.crt
  key: /etc/apportion/tls/tls.key
  {{- if ne .Values.tls.clientCertificate "never" }}
  client_ca: /etc/apportion/tls/ca.crt
  client_certificate: {{ .Values.tls.clientCertificate }}
  {{- end }}
  {{- else if .Values.tls.plaintext }}
  plaintext: true
  {{- else }}
  {{- fail "tls: name a Secret (tls.secret), or say that something else encrypts (tls.plaintext: true)" }}
  {{- end }}
{{- end -}}

{{- define "apportion.config" -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) (fromYaml (include "apportion.owned" .))) -}}
{{- end -}}

{{- define "apportion.sweepLabels" -}}
app.kubernetes.io/name: {{ include "apportion.name" . }}-sweep
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/component: sweep
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* What the pods of a sweep have in common. */ -}}
{{- define "apportion.sweepPod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.rehearse.sweep.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.rehearse.sweep.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: inputs
    {{- toYaml .Values.rehearse.sweep.inputs | nindent 4 }}
  - name: results
    {{- toYaml (.Values.rehearse.sweep.results | default (dict "emptyDir" (dict))) | nindent 4 }}
{{- end -}}

{{- define "apportion.sweepContainer" -}}
resources: {{- toYaml .Values.rehearse.sweep.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: inputs, mountPath: /inputs, readOnly: true}
  - {name: results, mountPath: /results}
{{- end -}}

{{- /* A container that copies between a directory and an object store. */ -}}
{{- define "apportion.sweepStore" -}}
image: {{ .root.Values.rehearse.sweep.store.image | quote }}
command: [rclone]
args: [copy, {{ .from | quote }}, {{ .to | quote }}]
{{- with .root.Values.rehearse.sweep.store.secret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{ include "apportion.sweepContainer" .root }}
{{- end -}}
