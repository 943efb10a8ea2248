.PHONY: help setup build build-fast serve demo test lint test-rust test-platform bench-landing bench-replay simulate
.DEFAULT_GOAL := help
SEEDS ?= 1000

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## install what this machine lacks, into .toolchain and node_modules
	@scripts/setup

build: setup ## build the Worker into build/ and print its size
	@node scripts/build.mjs

build-fast: setup ## the same without link-time optimisation and wasm-opt
	@node scripts/build.mjs --fast

serve: build ## run the Worker at http://127.0.0.1:8787, state in .state
	@node scripts/serve.mjs

demo: build ## land the changes of 19 agents, replays included; SEED=n varies it; the platform stays up
	@scripts/demo

test: build lint test-rust test-platform ## all tests

lint: setup ## no warning, for this machine and for WASM
	@scripts/lint

test-rust: setup
	cargo test --locked --workspace
	cargo test --locked --manifest-path scripts/bindgen/Cargo.toml --target-dir .toolchain/bindgen

test-platform: build
	node --test --test-concurrency=1 scripts/test/*.test.mjs

bench-landing: build ## landings per second against git itself, into target/figures/landing.jsonl
	@scripts/bench-landing

simulate: setup ## SEEDS=n seeds of the whole platform in a world that fails, into target/figures/simulation.jsonl
	cargo run --locked --release --quiet -p yard-simulation -- --seeds $(SEEDS)

bench-replay: build ## collisions by rules, of one index, by a scripted model, into target/figures/replay.jsonl
	@scripts/bench-replay
