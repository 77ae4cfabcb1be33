{{- define "pvescaler.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pvescaler.selector" -}}
app.kubernetes.io/name: pvescaler
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "pvescaler.labels" -}}
{{ include "pvescaler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "pvescaler.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The config file: what the chart adds, below what the values say. */ -}}
{{- define "pvescaler.config" -}}
{{- $added := dict
  "apiVersion" "pvescaler.dev/v1alpha1"
  "mode" .Values.mode
  "cluster" (dict "namespace" .Release.Namespace)
  "http" (dict "health" "0.0.0.0:8080" "dashboard" "127.0.0.1:8081") -}}
{{- if eq .Values.state "kubernetes" -}}
{{- $_ := set $added "state" (dict "kubernetes" (dict "namespace" .Release.Namespace)) -}}
{{- end -}}
{{- if .Values.secrets.dashboardToken -}}
{{- $_ := set $added.http "dashboardTokenFile" "/run/pvescaler/dashboard/token" -}}
{{- end -}}
{{- if eq .Values.mode "externalgrpc" -}}
{{- $tls := dict
  "cert" "/run/pvescaler/tls/tls.crt"
  "key" "/run/pvescaler/tls/tls.key"
  "clientCa" "/run/pvescaler/tls/ca.crt"
  "allow" (list "cluster-autoscaler") -}}
{{- $_ := set $added "grpc" (dict "listen" ":50051" "tls" $tls "expander" (dict "listen" ":50052")) -}}
{{- end -}}
{{- mergeOverwrite $added (deepCopy .Values.config) | toYaml -}}
{{- end -}}
