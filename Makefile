# Everything a contributor runs by hand and everything continuous integration runs, under the same names.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

GO ?= go
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
TOOLS := $(ROOT)/.bin

# Pinned tools come first on PATH: buf finds its plugins there by name.
export PATH := $(TOOLS):$(PATH)

# The compiler leaves out what only debuggers read, which a stripped binary and a test do without: a first build takes a tenth less processor
# time. Go commands by hand need the same setting to share the build cache with these targets.
LEAN := -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(LEAN),$(or $(GOFLAGS),$(shell cd / && $(GO) env GOFLAGS))) $(LEAN))

VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Where real calls spend their time, for the compiler. A build with it compiles every package again, the standard library included, so only
# releases and measurements use it. `make build PGO=$(PROFILE)` builds with it too. Its name is not default.pgo, which go build would take
# for itself.
PROFILE := cmd/apportion/release.pgo
PGO ?= off

# Knobs, all of them settable on the command line.
TESTFLAGS ?=
CASES ?=
BENCH ?= .
BENCHTIME ?= 1s
BENCHCOUNT ?= 1
BENCHFLAGS ?=
WIREFLAGS ?=
PLATFORMS ?=
REPLICAFLAGS ?=
LOADFLAGS ?=
OVERLOADFLAGS ?=
FAIRNESSFLAGS ?=
ATTACKFLAGS ?=
SCALEFLAGS ?=
CLIFLAGS ?=
EXTENDERFLAGS ?=
ROUNDS ?= 6
COMMIT ?= HEAD
FUZZTIME ?= 10s
LANGUAGES ?=
HALFYEARFLAGS ?=
UIFLAGS ?=
ROUTESFLAGS ?=

MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/testdata/*' -not -path './.*/*')))
# All packages of the modules of go.work, which are those of this project. The go command calls them `work`; where a module begins `./...` ends.
WORK = $(patsubst %,%/...,$(shell $(GO) list -m -f '{{.Dir}}'))
# In a module that is not in go.work: a tool, whose versions are its own.
TOOL := GOWORK=off $(GO)

# The packages that are built for browsers alone.
WASM := ./cmd/offline/bridge ./cmd/offline/wasm/...

.DEFAULT_GOAL := help

##@ Everyday

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/apportion, stamped with the version, from the build cache that the tests share.
	$(GO) build -buildvcs=false -pgo=$(PGO) -ldflags '$(LDFLAGS)' -o bin/apportion ./cmd/apportion

.PHONY: demo
demo: ## Serve on a loopback port and ask over gRPC about a sample cluster: what queues deserve, and why a job waits.
	tools/scripts/demo.sh

# Tests make much garbage and live for short. Collecting it when the heap has grown fivefold takes a quarter less processor time and at most a
# few hundred megabytes more. The compiler gains nothing by it.
LAZY := -exec 'env GOGC=400'

# `make lint` vets.
.PHONY: test
test: ## Run every test (TESTFLAGS='-run Reclaim').
	@echo "== all tests of $$($(GO) list work | wc -l) packages, a line for each; the first time this compiles them, which takes longer than the tests"
	$(GO) test -vet=off -timeout 1h $(LAZY) $(strip $(TESTFLAGS) work)

# The race detector makes tests several times slower and finds nothing in trying more of the same: properties are tried on a fifth of the
# cases, and long tests of one goroutine are left to `make test`, and so are packages without goroutines. Its build shares nothing with others.
# It needs cgo.
.PHONY: test-race
test-race: ## Run the tests of packages with goroutines again, under the race detector, with fewer cases (needs a C compiler).
	@echo "== the tests of $$(tools/scripts/concurrent.sh | wc -w) packages with goroutines, under the race detector, which compiles everything again"
	CGO_ENABLED=1 $(GO) test -race -short -vet=off -timeout 1h $(LAZY) $(TESTFLAGS) $$(tools/scripts/concurrent.sh)

.PHONY: schedulers
schedulers: ## Build the API server and the schedulers of the next two targets into .bin (half an hour of processor time the first time).
	tools/scripts/schedulers.sh

.PHONY: test-cluster
test-cluster: ## Test against a real API server and scheduler of Kubernetes, Kueue's manager and etcd, built from their Go modules (TESTFLAGS='-run WithKueue', PACKAGES=…).
	tools/scripts/test-cluster.sh

.PHONY: test-schedulers
test-schedulers: ## Test Kubernetes' scheduler with the plugin against a real API server (TESTFLAGS='-run Measured -args -nodes 5000 -pods 10000').
	tools/scripts/test-schedulers.sh

.PHONY: reference
reference: ## Compare our answers with the recorded ones (CASES=PATH for some of them).
	$(GO) run $(strip ./cmd/reference $(CASES))
	$(GO) test -run "Suffices|AnsweredAsRecorded" ./adapter/extender
	$(GO) test -run RemoteAndLocalAnswerAlike ./cmd/internal/test/reference -args -whole

.PHONY: properties
properties: ## Try the properties of `fair` on a million divisions and a hundred thousand runs to rest, weeks of demand with memory, games with gangs, and plans and remedies on random clusters (PROPERTYFLAGS='-seed 7').
	$(GO) test -timeout 0 -run 'Plan' -v ./engine/plan -args -plans 100000
	$(GO) test -timeout 0 -run AnswersAboutOneJobAgree -v ./cmd/apportion/internal/agreement -args -clusters 10000 -remedied 4
	$(GO) test -timeout 0 -run 'Remed' -v ./engine/remedy -args -remedies 700
	$(GO) test -timeout 0 -run 'Propert|Matters|Never|WithoutAMemory|LessForNobody|TakesNothing|ChangesNothing|Undone|Dividing|Converge' -v ./engine/policy/fair \
		-args -divisions 1000000 -runs 100000 $(PROPERTYFLAGS)
	$(GO) test -timeout 0 -run Weeks -v ./engine/policy/fair -args -weeks
	$(GO) test -timeout 0 -run GangsCost -v ./cmd/apportion/internal/rehearsal -args -games

.PHONY: properties-memory
properties-memory: ## Make the figures of docs/fair.md about memory: 100,000 histories, weeks of demand, half a year, cost, a ledger of 10^7 events (eight minutes of processor time, on one core).
	GOMAXPROCS=1 $(GO) test -timeout 60m -run 'NeverRepeat|LinesWithMemory|WithoutAMemory|Dividing|Converge' -v ./engine/policy/fair -args -runs 100000 $(PROPERTYFLAGS)
	GOMAXPROCS=1 $(GO) test -timeout 60m -run Weeks -v ./engine/policy/fair -args -weeks
	GOMAXPROCS=1 $(GO) test -timeout 60m -run TheHalfYear -v ./cmd/apportion -args -halfyear
	GOMAXPROCS=1 $(GO) test -timeout 60m -run '^$$' -bench Memory -benchtime 150x ./tools/bench
	GOMAXPROCS=1 $(GO) test -timeout 60m -run '^$$' -bench Events -benchtime 1x ./ledger/file

.PHONY: routes
routes: ## Count the files that commands and calls enter beyond the start of the program, by coverage (ROUTESFLAGS=-v lists small ones).
	tools/scripts/routes.sh $(ROUTESFLAGS)

.PHONY: half-year
half-year: ## Compare the table and the drawing of half a year in docs/rehearse.md with what the command prints (HALFYEARFLAGS=-update writes them).
	$(GO) test -run TheHalfYear ./cmd/apportion -args -halfyear $(HALFYEARFLAGS)

.PHONY: bench
bench: ## Run the benchmarks (BENCH=regexp, BENCHTIME=1s, BENCHCOUNT=1, BENCHFLAGS=-short).
	tools/scripts/bench.sh -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(BENCHCOUNT) $(BENCHFLAGS)

.PHONY: bench-wire
bench-wire: ## Measure the service over loopback, compared with the minimum of grpc-go (WIREFLAGS='-only shares -rounds 3').
	$(GO) run -pgo=$(PROFILE) $(strip ./tools/bench/wire $(WIREFLAGS))

.PHONY: profile
profile: ## Profile the service and the engine for the compiler (cmd/apportion/release.pgo); `make bench-pgo` measures the effect.
	rm -rf bin/profile && mkdir -p bin/profile
	$(GO) run -pgo=$(PROFILE) ./tools/bench/wire -rounds 4 -profile $(ROOT)/bin/profile
	$(GO) test -run '^$$' -bench . -benchtime 500ms -cpuprofile $(ROOT)/bin/profile/cpu-engine.prof -o bin/bench.test ./tools/bench
	$(GO) tool pprof -proto $$(find bin/profile -name 'cpu-*.prof' -size +0) > bin/profile/merged && mv bin/profile/merged $(PROFILE)

.PHONY: bench-pgo
bench-pgo: ## Compare builds with and without the profile, in turns (ROUNDS=6).
	tools/scripts/bench-pgo.sh $(PROFILE) $(ROUNDS)

.PHONY: bench-pair
bench-pair: ## Compare the processor time of calls with another commit, in turns (COMMIT=v0.1.0 ROUNDS=6 BENCH=Cost).
	tools/scripts/bench-pair.sh '$(COMMIT)' $(ROUNDS) '$(if $(filter .,$(BENCH)),Cost,$(BENCH))'

.PHONY: bench-load
bench-load: build $(TOOLS)/ghz ## Put the service under load with ghz (LOADFLAGS='-only digest -strict'); reports in tools/bench/load/report/.
	$(GO) run $(strip ./tools/bench/load cases -ghz $(TOOLS)/ghz $(LOADFLAGS))

.PHONY: bench-extender
bench-extender: PGO := $(PROFILE)
bench-extender: build ## Send pushes of 10,000 pods as Volcano does, on an idle machine and on a busy one (EXTENDERFLAGS='-load 8').
	$(GO) run $(strip ./tools/bench/load extender $(EXTENDERFLAGS))

.PHONY: bench-cli
bench-cli: build ## Measure the long commands on the standard cluster, each in a fresh process (CLIFLAGS='-rounds 1 -only audit').
	$(GO) run $(strip ./tools/bench/cli $(CLIFLAGS))

.PHONY: bench-scale
bench-scale: ## Show how cost grows from 10^3 to 10^6 tasks, as a table and a plot (SCALEFLAGS='-max 100000').
	$(GO) run $(strip ./tools/bench/wire scale $(SCALEFLAGS))

.PHONY: show-overload
show-overload: build ## Offer up to ten times what one server can do, and show its goodput.
	$(GO) run $(strip ./tools/bench/load overload $(OVERLOADFLAGS))

.PHONY: show-fairness
show-fairness: build ## Measure small questions beside eight callers of the most expensive ones (FAIRNESSFLAGS='-hostile 16').
	$(GO) run $(strip ./tools/bench/load fairness $(FAIRNESSFLAGS))

.PHONY: show-attacks
show-attacks: build ## Play every attack, and show in one table which bounds held; fails if one did not (ATTACKFLAGS='-only race -race-time 5m', '-scale 0.1').
	$(GO) run $(strip ./tools/bench/load attacks $(ATTACKFLAGS))

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each.
	tools/scripts/fuzz.sh $(FUZZTIME)

##@ Contract

.PHONY: generate
generate: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc $(TOOLS)/protoc-gen-go-vtproto $(TOOLS)/protoc-gen-connect-go $(TOOLS)/protoc-gen-apidoc ## Regenerate gen/ and docs/api from proto/.
	tools/scripts/generate.sh

.PHONY: generate-config
generate-config: ## Regenerate docs/configuration.schema.json and docs/configuration.md from the settings.
	$(GO) test ./cmd/apportion/internal/config -run SchemaAndReference -update

.PHONY: calibrate
calibrate: ## Measure how often forecasts hold, on generated traces or TRACE=FILE.csv|FILE.swf (CALIBRATEFLAGS='-runs 50 -seeds 4').
	$(GO) run ./cmd/apportion/internal/calibrate $(if $(TRACE),-trace $(TRACE),-plot docs/forecast.svg) $(CALIBRATEFLAGS)

.PHONY: proto-lint
proto-lint: $(TOOLS)/buf ## Check the style and the formatting of proto/.
	buf lint
	buf format --diff --exit-code

.PHONY: proto-format
proto-format: $(TOOLS)/buf ## Format proto/ in place.
	buf format --write

.PHONY: proto-breaking
proto-breaking: $(TOOLS)/buf ## Check that proto/ is compatible with the newest release.
	tools/scripts/proto-breaking.sh

.PHONY: conformance
conformance: ## Write the answers of the conformance vectors in testdata/conformance again.
	$(GO) run ./internal/test/conformance

.PHONY: generate-clients
generate-clients: ## Generate and build the stubs and examples of other languages (LANGUAGES='python rust').
	tools/scripts/clients.sh generate $(LANGUAGES)

.PHONY: test-clients
test-clients: ## Play the examples of other languages and the conformance vectors (LANGUAGES='python rust').
	tools/scripts/clients.sh test $(LANGUAGES)

.PHONY: test-checker
test-checker: ## Run the checkers in Go, Python and the page on correct and on changed certificates of plugin fair.
	tools/scripts/test-checker.sh

.PHONY: proof
proof: ## Check the proofs in tools/proof/ with Coq, and compare the proved checker with those in Go and Python (MUTANTS=100000).
	tools/scripts/proof.sh

.PHONY: model
model: ## Look for circles of evictions under Kueue, Volcano and fair with the solver Z3, which pip installs.
	tools/scripts/model.sh

##@ Page

.PHONY: ui
ui: ## Build the page: ui/dist, which is checked in, from ui/src (needs Node.js and npm).
	tools/scripts/ui.sh build

.PHONY: ui-drift
ui-drift: ## Fail if ui/dist differs from what ui/src generates.
	tools/scripts/ui.sh drift

.PHONY: test-ui
test-ui: build ## Test the page: its parts by Node.js, its views in Chromium (UIFLAGS=--test-name-pattern=keyboard).
	tools/scripts/ui.sh test $(UIFLAGS)

.PHONY: ui-pictures
ui-pictures: build ## Take the pictures of the page that README and docs show.
	tools/scripts/ui.sh pictures

.PHONY: ui-measure
ui-measure: build ## Measure What if on the standard cluster in Chromium (UIFLAGS='--steps 40').
	tools/scripts/ui.sh measure $(UIFLAGS)

.PHONY: site
site: ## Build the site: home page, documents, and the page with the engine in WebAssembly, as static files (needs Node.js and npm).
	tools/scripts/site.sh build

.PHONY: test-site
test-site: build site ## Test the site: the conformance vectors in WebAssembly, documents and views in Chromium (UIFLAGS=--test-name-pattern=zip).
	tools/scripts/site.sh test $(UIFLAGS)

.PHONY: site-measure
site-measure: build site ## Measure what the site loads, and pictures and questions in Chromium (UIFLAGS='--steps 40').
	tools/scripts/site.sh measure $(UIFLAGS)

##@ Deployment

.PHONY: chart
chart: ## Render deploy/chart with Helm's engine and check it against Kubernetes' types.
	cd tools/chart && $(TOOL) vet ./... && $(TOOL) test ./...

.PHONY: generate-chart
generate-chart: ## Copy the schema of the server's settings into the chart's schema.
	cd tools/chart && $(TOOL) test -run Schema . -update

.PHONY: show-replicas
show-replicas: ## Show 1, 2 and 3 replicas behind HAProxy and behind a balancing client (REPLICAFLAGS='-time 2s').
	tools/scripts/show-replicas.sh $(REPLICAFLAGS)

.PHONY: show-drain
show-drain: build ## Show that no call fails while replicas are restarted or killed (ATTACKFLAGS='-scale 2').
	$(GO) run $(strip ./tools/bench/load attacks -only '^(restart|kill)$$' $(ATTACKFLAGS))

.PHONY: release
release: test-release ## Make static binaries, archives, bills of materials, image and checksums in dist/, and check them (PLATFORMS=linux/amd64,…).
	VERSION='$(VERSION)' PROFILE='$(PROFILE)' tools/scripts/release.sh $(PLATFORMS)

.PHONY: test-release
test-release:
	cd tools/release && $(TOOL) vet ./... && $(TOOL) test ./...

.PHONY: reproducible
reproducible: test-release ## Release for this platform twice, in different places, and compare (PROFILE= for a build without the compiler's profile).
	VERSION='$(VERSION)' PROFILE='$(PROFILE)' tools/scripts/reproducible.sh

.PHONY: vulnerabilities
vulnerabilities: $(TOOLS)/govulncheck ## Look for known vulnerabilities in the called code.
	tools/scripts/vulnerabilities.sh work

##@ Code

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Run the linters, import rules included.
	tools/scripts/purity.sh
	golangci-lint run $(WORK)
	GOOS=js GOARCH=wasm golangci-lint run $(WASM)

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## Format the Go code in place.
	golangci-lint fmt $(WORK)

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of every module.
	tools/scripts/tidy.sh $(MODULES)

.PHONY: tidy-check
tidy-check: ## Fail if a go.mod or go.sum is not tidy.
	tools/scripts/tidy.sh -diff $(MODULES)

.PHONY: drift
drift: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc $(TOOLS)/protoc-gen-go-vtproto $(TOOLS)/protoc-gen-connect-go $(TOOLS)/protoc-gen-apidoc ## Fail if anything generated is stale.
	tools/scripts/drift.sh

.PHONY: check
check: test reference lint proto-lint proto-breaking drift tidy-check ## Everything a change must pass.

.PHONY: tools
tools: $(TOOLS)/buf $(TOOLS)/protoc-gen-go $(TOOLS)/protoc-gen-go-grpc $(TOOLS)/protoc-gen-go-vtproto $(TOOLS)/protoc-gen-connect-go $(TOOLS)/protoc-gen-apidoc $(TOOLS)/ghz $(TOOLS)/golangci-lint ## Build the pinned tools into .bin/.

.PHONY: clean
clean: ## Remove all build results, including the tools.
	rm -rf bin .bin dist site

# Each tool has a module of its own, so that no tool's dependencies move another's or the project's.
# A binary is rebuilt when its module's go.mod or go.sum is newer.
define tool
$(TOOLS)/$(1): tools/$(2)/go.mod tools/$(2)/go.sum
	cd tools/$(2) && CGO_ENABLED=0 $$(TOOL) build -trimpath -buildvcs=false -ldflags '-s -w' -o $$@ $(3)
	touch $$@
endef

# The one plugin of our own.
$(TOOLS)/protoc-gen-apidoc: $(wildcard internal/apidoc/*.go)
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $@ ./internal/apidoc

$(eval $(call tool,buf,buf,github.com/bufbuild/buf/cmd/buf))
$(eval $(call tool,protoc-gen-go,protoc-gen,google.golang.org/protobuf/cmd/protoc-gen-go))
$(eval $(call tool,protoc-gen-go-grpc,protoc-gen,google.golang.org/grpc/cmd/protoc-gen-go-grpc))
$(eval $(call tool,protoc-gen-go-vtproto,protoc-gen,github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto))
$(eval $(call tool,ghz,ghz,.))
$(eval $(call tool,protoc-gen-connect-go,protoc-gen,connectrpc.com/connect/cmd/protoc-gen-connect-go))
$(eval $(call tool,govulncheck,govulncheck,golang.org/x/vuln/cmd/govulncheck))
$(eval $(call tool,golangci-lint,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
