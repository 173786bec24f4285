.PHONY: help demo test lint bench mutants setup

help: ## What can be made here
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## The whole platform on three real hosts, told step by step; ends by itself
	@scripts/demo

test: ## Every test and check; the last line counts them
	@scripts/test

lint: ## The quick checks: formatting, clippy, dependencies, rules of the tree
	@scripts/lint

bench: ## Figures beside their peers, from optimized builds
	@scripts/bench

mutants: ## Seeded faults in the deciding of operations, and how many the tests catch (hours)
	@scripts/mutants

setup: ## Installs what the tests need; says nothing when nothing is missing
	@scripts/setup
