{{- define "silas.labels" -}}
app.kubernetes.io/name: silas
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* None while maintenance stops everything else; otherwise an autoscaler counts them, where there is one. */}}
{{- define "silas.replicas" -}}
{{- if .root.Values.maintenance.stop }}
replicas: 0
{{- else if not .values.autoscaling.enabled }}
replicas: {{ .values.replicas }}
{{- end }}
{{- end }}

{{- define "silas.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Settings whose values are in mounted secrets, by the name of each one's file: the settings read names with _FILE. */}}
{{- define "silas.keys" -}}
{{- range $name, $key := . }}
- name: {{ $name }}_FILE
  value: /run/secrets/{{ $key }}
{{- end }}
{{- end }}

{{/* Those of web and of the trusted worker. */}}
{{- define "silas.webKeys" -}}
{{ include "silas.keys" (dict "SECRET_KEY" "secret_key" "DATABASE_URL" "database_url" "SILAS_SIGNING_KEY" "signing_key" "SILAS_SECRETS_KEY" "secrets_key") }}
{{- end }}

{{- define "silas.redis" -}}
- name: REDIS_URL
  value: {{ required "redis.url is the address of Redis" .Values.redis.url | quote }}
- name: SILAS_BROKER_URL
  value: {{ .Values.redis.brokerUrl | quote }}
{{- end }}

{{- define "silas.environment" -}}
{{- /* Prometheus asks each pod by its address. */}}
{{- if .Values.metricsSecret }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
- name: ALLOWED_HOSTS
  value: "{{ required "host is the name under which visitors reach the platform" .Values.host }}{{ if .Values.metricsSecret }},$(POD_IP){{ end }}"
- name: CSRF_TRUSTED_ORIGINS
  value: https://{{ .Values.host }}
- name: SILAS_TRUSTED_PROXIES
  value: {{ .Values.trustedProxies | quote }}
{{ include "silas.redis" . }}
- name: SILAS_CHANNELS_URL
  value: {{ .Values.redis.channelsUrl | quote }}
- name: SILAS_CHECKPOINTS
  value: /var/lib/silas/trust/audit-checkpoints.jsonl
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "silas.files" -}}
- name: SILAS_FILES_BUCKET
  value: {{ required "files.bucket is the bucket of visitors' files" .Values.files.bucket | quote }}
- name: SILAS_FILES_ENDPOINT
  value: {{ .Values.files.endpoint | quote }}
- name: SILAS_FILES_REGION
  value: {{ .Values.files.region | quote }}
{{- with .Values.files.credentialsSecret }}
- name: SILAS_FILES_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: access_key}}
- name: SILAS_FILES_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ . }}, key: secret_key}}
{{- end }}
{{- end }}

{{/* What a pod of any kind is placed by and may do. With sandboxes it has a user namespace of its own. */}}
{{- define "silas.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- if .sandboxes }}
hostUsers: {{ .root.Values.sandboxes.hostUsers }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "silas.labels" . | nindent 8 }}
{{- end }}

{{/* `tag`: another version of the image than that of the release. */}}
{{- define "silas.container" -}}
image: {{ with .tag }}{{ $.root.Values.image.repository }}:{{ . }}{{ else }}{{ include "silas.image" .root }}{{ end }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
{{- if .sandboxes }}
  procMount: Unmasked
  seccompProfile: {type: Unconfined}
  appArmorProfile: {type: Unconfined}
{{- else }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- end }}

{{/* The process's secrets, and what web writes and workers read. */}}
{{- define "silas.volumes" -}}
- name: secrets
  secret: {secretName: {{ .secret }}, defaultMode: 0440}
- name: trust
  persistentVolumeClaim:
    claimName: {{ .root.Values.trust.existingClaim | default (printf "%s-trust" .root.Release.Name) }}
{{- end }}

{{- define "silas.disruptions" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels: {{ include "silas.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{ include "silas.labels" . | nindent 6 }}
{{- end }}
