# liveroom: a live-room realtime server. `make run` needs Go alone; `make cluster` and `make load` also
# redis-server; `make test` also gcc, Node 20, Chromium, promtool, nginx, Caddy, HAProxy and systemd-analyze.
GO       ?= go
DATA_DIR ?= ./data
FLAGS    ?=
FUZZTIME ?= 10s

.DEFAULT_GOAL := build
.PHONY: build run demo cluster load rolling test check static gotest jstest bench model release chaos wallet fuzz chromium promtool redis proxies systemd node clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/liveserver ./cmd/liveserver

# One node with everything inside, and its addresses with tokens. More flags: make run FLAGS='-addr :9000'
run: build
	@exec ./bin/liveserver -data-dir $(DATA_DIR) -print-tokens always -gifts-authority open $(FLAGS)

# Three nodes behind one address, a Redis and a NATS on this machine, and their addresses with tokens. More flags: make cluster FLAGS='-nodes 5 -port 9000'
cluster: redis build
	$(GO) build -trimpath -o bin/loadtest ./loadtest
	@exec ./bin/loadtest cluster -server bin/liveserver $(FLAGS)

# A platform beside one node: it signs its users' tokens, pays for their gifts and settles. Accounts and addresses are printed. docs/integrate.md explains it.
demo: build
	$(GO) build -C examples/platform -trimpath -o $(CURDIR)/bin/platform .
	@exec ./bin/platform -server bin/liveserver -data-dir $(DATA_DIR)/demo $(FLAGS)

# A short pulse against such a cluster of its own. The report's path is the last line.
load: redis build
	$(GO) build -trimpath -o bin/loadtest ./loadtest
	@exec ./bin/loadtest pulse -spawn 3 -server bin/liveserver -report bin/report $(FLAGS)

# All nodes of such a cluster restarted one after the other under 10,000 viewers who come back, and what each of them missed. An
# upgrade: make rolling FLAGS='-before /path/to/the/old/liveserver'
rolling: redis build
	$(GO) build -trimpath -o bin/loadtest ./loadtest
	@exec ./bin/loadtest rolling -server bin/liveserver $(FLAGS)

test: chromium promtool redis proxies systemd node static jstest gotest

# What needs no server: the tools' versions are in go.mod.
check: static
	$(GO) test -run '^TestImports$$' ./cmd/liveserver

# What is compiled here is what the tests of images, releases and examples link, so that all of it is compiled twice: like this, and for
# the race detector. GOGC: these tools hold the whole program, and collecting it again and again took a third of their time.
static: export GOGC = 400
static: export CGO_ENABLED = 0
static: export GOFLAGS += -trimpath
static:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "run gofmt on:" $$unformatted; exit 1; fi
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	cd examples/platform && $(GO) mod tidy -diff && $(GO) vet ./...
	@dead=$$($(GO) tool deadcode -test ./...) && if [ -n "$$dead" ]; then echo "nothing calls:"; echo "$$dead"; exit 1; fi

# -parallel is about waiting, of which most tests of a whole server consist, and not about processors. go vet has run (static). The
# race detector would sleep for a second at the end of each package.
gotest:
	GORACE=atexit_sleep_ms=0 $(GO) test -race -shuffle=on -vet=off -parallel 4 -timeout 15m ./...
	CGO_ENABLED=0 $(GO) test -C examples/platform -trimpath -vet=off ./...

jstest: node
	node --test web/test/*.test.js

# Go benchmarks (for benchstat: make bench BENCHFLAGS='-count 10' > new.txt), then the README's table, each figure beside a bare
# write(2) loop of the same run. Quicker: FLAGS='-viewers 1000 -sizes 128 -fanout 5000 -sessions 0'
bench: build
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./...
	$(GO) build -trimpath -o bin/loadtest ./loadtest
	@./bin/loadtest table -server bin/liveserver -json bin/table.json $(FLAGS)

# Shared quotas in simulation, the large form: writes docs/scale.md's tables anew. Another seed: make model SEED=7
SEED ?= 1
model:
	$(GO) test -count=1 -timeout 30m -v ./limit/internal/model -large -seed $(SEED) -docs $(CURDIR)/docs

# Nodes, Redis and NATS as processes that are killed, stopped and starved while people give, and then the ledger. CHAOS=10m for longer.
CHAOS ?= 2m
chaos: redis
	$(GO) test -count=1 -timeout 60m -v -run '^(TestALedgerThatIsBadIsCaught|TestChaos)$$' ./cmd/liveserver -chaos $(CHAOS) -chaos-seed $(SEED)

# A platform's wallet, three nodes, NATS and Redis as processes, of which wallet and nodes are killed and stopped while people give and the
# wallet's answers get lost, and the leaders of three NATS servers: money taken = gifts in the ledger. WALLET=10m for longer.
WALLET ?= 2m
wallet: redis
	$(GO) test -count=1 -timeout 60m -v -run '^(TestBooksThatDisagreeAreCaught|TestWallet.*)$$' ./cmd/liveserver -wallet $(WALLET) -chaos-seed $(SEED)

# Every fuzz target for $(FUZZTIME) each.
fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

# What a tag is published as, in bin/release: archives for six platforms, Debian packages, the client for npm, a bill of materials each,
# notes, checksums. Fewer: PLATFORMS=linux/amd64
release:
	deploy/release/release.sh bin/release

# What the tests need beside Go, gcc and Node: taken where it is, installed from Debian's packages where that may be done.
define install
	@for b in $(1); do command -v $$b >/dev/null 2>&1 && exit 0; done; \
	if ! command -v apt-get >/dev/null 2>&1; then echo "make test needs $(firstword $(1)): please install it" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then asroot=; \
	elif sudo -n true 2>/dev/null; then asroot=sudo; \
	else echo "make test needs $(firstword $(1)): sudo apt-get install $(2)" >&2; exit 1; fi; \
	$$asroot apt-get update -q && $$asroot env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(2)
endef

chromium:
	$(call install,chromium chromium-browser google-chrome headless-shell,chromium)

promtool:
	$(call install,promtool,prometheus)

redis:
	$(call install,redis-server valkey-server,redis-server)

proxies:
	$(call install,nginx,nginx-light)
	$(call install,caddy,caddy)
	$(call install,haproxy,haproxy)

systemd:
	$(call install,systemd-analyze,systemd)

node:
	@command -v node >/dev/null 2>&1 || { echo "make test needs Node 20 or newer: sudo apt-get install nodejs" >&2; exit 1; }

clean:
	rm -rf bin
