{{- define "pagewire.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "pagewire.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "pagewire.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "pagewire.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "pagewire.selector" -}}
app.kubernetes.io/name: {{ include "pagewire.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pagewire.labels" -}}
{{ include "pagewire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "pagewire.serviceAccount" -}}
{{- default (include "pagewire.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "pagewire.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- define "pagewire.config" -}}
{{- default (printf "%s-config" (include "pagewire.fullname" .)) .Values.existingConfigMap }}
{{- end }}

{{/* The topics that a stage reads: schemas/topics.py and pipelines/runtime/stage.py, held alike by tests/helm. */}}
{{- define "pagewire.topics" -}}
chunk: [cms.changes]
embed: [ingest.chunks]
index: [ingest.embeddings, ingest.receipts]
rebuild: [rebuild.orders]
rephrase: [query.requests]
retrieve: [query.rephrased]
answer: [query.retrieved]
judge: [query.outcomes]
log: [query.outcomes, query.verdicts]
{{- end }}

{{/* The settings of all pods, as variables. */}}
{{- define "pagewire.settings" -}}
{{- $kafka := .Values.kafka }}
{{- $elastic := .Values.elasticsearch }}
PAGEWIRE_KAFKA: {{ required "kafka.bootstrapServers: host:port of your Kafka" $kafka.bootstrapServers | quote }}
PAGEWIRE_KAFKA_SECURITY_PROTOCOL: {{ $kafka.securityProtocol }}
{{- with $kafka.topicPrefix }}
PAGEWIRE_TOPIC_PREFIX: {{ . | quote }}
{{- end }}
{{- with $kafka.saslMechanism }}
PAGEWIRE_KAFKA_SASL_MECHANISM: {{ . | quote }}
{{- end }}
{{- with $kafka.user }}
PAGEWIRE_KAFKA_USER: {{ . | quote }}
{{- end }}
{{- with $kafka.oauth.url }}
PAGEWIRE_KAFKA_OAUTH_URL: {{ . | quote }}
{{- end }}
{{- with $kafka.oauth.scope }}
PAGEWIRE_KAFKA_OAUTH_SCOPE: {{ . | quote }}
{{- end }}
{{- if $kafka.ca.secret }}
PAGEWIRE_KAFKA_CA: /run/secrets/pagewire/kafka-ca.pem
{{- end }}
{{- if $kafka.certificate.secret }}
PAGEWIRE_KAFKA_CERTIFICATE: /run/secrets/pagewire/kafka-certificate.pem
PAGEWIRE_KAFKA_CERTIFICATE_KEY: /run/secrets/pagewire/kafka-certificate.key
{{- end }}
PAGEWIRE_ELASTICSEARCH: {{ required "elasticsearch.url: URL of your Elasticsearch" $elastic.url | quote }}
{{- with $elastic.user }}
PAGEWIRE_ELASTICSEARCH_USER: {{ . | quote }}
{{- end }}
{{- if $elastic.ca.secret }}
PAGEWIRE_ELASTICSEARCH_CA: /run/secrets/pagewire/elasticsearch-ca.pem
{{- end }}
PAGEWIRE_LOG_JSON: "true"
{{ toYaml .Values.settings }}
{{- end }}

{{/* Files of /run/secrets/pagewire: {path, secret, key}. `secrets`: the settings that this pod gets. */}}
{{- define "pagewire.files" -}}
{{- $values := .root.Values }}
{{- range $name := .secrets }}
{{- with index $values.secrets $name }}
- {path: {{ $name }}, secret: {{ .secret | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
{{- with $values.kafka.ca }}{{ if .secret }}
- {path: kafka-ca.pem, secret: {{ .secret | quote }}, key: {{ .key | quote }}}
{{- end }}{{ end }}
{{- with $values.kafka.certificate }}{{ if .secret }}
- {path: kafka-certificate.pem, secret: {{ .secret | quote }}, key: {{ .key | quote }}}
- {path: kafka-certificate.key, secret: {{ .secret | quote }}, key: {{ .privateKey | quote }}}
{{- end }}{{ end }}
{{- with $values.elasticsearch.ca }}{{ if .secret }}
- {path: elasticsearch-ca.pem, secret: {{ .secret | quote }}, key: {{ .key | quote }}}
{{- end }}{{ end }}
{{- if .config }}
{{- range $values.siteSecrets.names }}
- {path: {{ . }}, secret: {{ $values.siteSecrets.secret | quote }}, key: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/*
What is inside every pod.
  root       the chart's context
  name       of the container: alerts tell processes by it
  args       of `pagewire`
  settings   of this pod alone
  own        its values: resources, where it may run
  config     reads pagewire.yaml
  model      asks a model
  gateway    takes requests, so it gets the keys
  account    name of the service account
  claim      a volume for backups
  more       further fields of the container
*/}}
{{- define "pagewire.pod" -}}
{{- $values := .root.Values }}
{{- $secrets := list "PAGEWIRE_ELASTICSEARCH_API_KEY" "PAGEWIRE_ELASTICSEARCH_PASSWORD" "PAGEWIRE_KAFKA_CERTIFICATE_PASSWORD" "PAGEWIRE_KAFKA_PASSWORD" }}
{{- $settings := include "pagewire.settings" .root | fromYaml }}
{{- if .model }}
{{- $secrets = append $secrets "PAGEWIRE_OPENAI_API_KEY" }}
{{- range $name, $value := $values.modelSettings }}{{ $_ := set $settings $name $value }}{{ end }}
{{- end }}
{{- if .gateway }}
{{- $secrets = concat $secrets (list "PAGEWIRE_ADMIN_KEY" "PAGEWIRE_TOKEN_SECRET") }}
{{- end }}
{{- range $name := $secrets }}
{{- if index $values.secrets $name }}{{ $_ := set $settings (printf "%s_FILE" $name) (printf "/run/secrets/pagewire/%s" $name) }}{{ end }}
{{- end }}
{{- if .config }}
{{- $_ := set $settings "PAGEWIRE_CONFIG" "/etc/pagewire/pagewire.yaml" }}
{{- range $values.siteSecrets.names }}{{ $_ := set $settings (printf "%s_FILE" .) (printf "/run/secrets/pagewire/%s" .) }}{{ end }}
{{- end }}
{{- range $name, $value := .settings }}{{ $_ := set $settings $name $value }}{{ end }}
{{- $files := include "pagewire.files" (dict "root" .root "secrets" $secrets "config" .config) | fromYamlArray }}
serviceAccountName: {{ .account }}
automountServiceAccountToken: false
# Else Kubernetes would put PAGEWIRE_... variables of its own beside ours, named after our Services, and none would start.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $values.nodeSelector .own.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $values.tolerations .own.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $values.priorityClassName .own.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
containers:
  - name: {{ .name }}
    image: {{ include "pagewire.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
      {{- range $name, $value := $settings }}
      - {name: {{ $name }}, value: {{ $value | quote }}}
      {{- end }}
      {{- if .claim }}
      - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
      {{- end }}
    {{- with .more }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    resources: {{- toYaml .own.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      - {name: home, mountPath: /var/lib/pagewire}
      {{- if .claim }}
      - {name: backups, mountPath: /backups}
      {{- end }}
      {{- if .config }}
      - {name: config, mountPath: /etc/pagewire, readOnly: true}
      {{- end }}
      {{- if $files }}
      - {name: secrets, mountPath: /run/secrets/pagewire, readOnly: true}
      {{- end }}
      {{- with $values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  # In memory: what is too much for it is refused; on a disk the pod would be evicted for it.
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: 128Mi}
  # Outlives a container's end: a message that kills its process is counted here.
  - name: home
    emptyDir: {}
  {{- with .claim }}
  - name: backups
    persistentVolumeClaim: {claimName: {{ . }}}
  {{- end }}
  {{- if .config }}
  - name: config
    configMap: {name: {{ include "pagewire.config" .root }}}
  {{- end }}
  {{- if $files }}
  - name: secrets
    projected:
      defaultMode: 288 # 0440
      sources:
        {{- range $files }}
        - secret: {name: {{ .secret | quote }}, items: [{key: {{ .key | quote }}, path: {{ .path }}}]}
        {{- end }}
  {{- end }}
  {{- with $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Annotations and labels of a pod. */}}
{{- define "pagewire.podMeta" -}}
annotations:
  {{- if not .root.Values.existingConfigMap }}
  # A changed configuration is taken up.
  checksum/config: {{ toYaml .root.Values.config | sha256sum }}
  {{- end }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
labels:
  {{- include "pagewire.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .job }}
  pagewire-job: {{ . }}
  {{- end }}
  {{- if .outside }}
  pagewire-outside: "true"
  {{- end }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* When topics are made: before everything else. What an ExternalSecret fills is not there before the chart is. */}}
{{- define "pagewire.topicsHook" -}}
{{ ternary "post-install" "pre-install" .Values.externalSecret.enabled }},pre-upgrade
{{- end }}

{{/* Egress of a NetworkPolicy to what everybody needs: names, Kafka, Elasticsearch, Kafka's tokens. */}}
{{- define "pagewire.servers" -}}
{{- $policy := .Values.networkPolicy -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
  {{- with $policy.dnsTo }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
- ports: {{- include "pagewire.ports" (dict "given" $policy.kafkaPorts "addresses" .Values.kafka.bootstrapServers) | trim | nindent 4 }}
  {{- with $policy.kafkaTo }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
- ports: {{- include "pagewire.ports" (dict "given" $policy.elasticsearchPorts "addresses" .Values.elasticsearch.url) | trim | nindent 4 }}
  {{- with $policy.elasticsearchTo }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with .Values.kafka.oauth.url }}
# Everybody fetches a token.
- ports: [{protocol: TCP, port: {{ regexFind ":[0-9]+" . | default (ternary ":443" ":80" (hasPrefix "https:" .)) | trimPrefix ":" }}}]
{{- end }}
{{- end }}

{{/* Ports in a list of addresses, each once. `given`: said otherwise by the values. */}}
{{- define "pagewire.ports" -}}
{{- range .given }}
- {protocol: TCP, port: {{ . }}}
{{- else }}
{{- range regexFindAll ":[0-9]+" .addresses -1 | uniq }}
- {protocol: TCP, port: {{ trimPrefix ":" . }}}
{{- end }}
{{- end }}
{{- end }}
