# One word per wish; `make help` lists them. The work is done by cargo and by the
# scripts in tools/, so each line here can be typed by hand as well.
SHELL := /bin/bash
export PATH := $(PATH):/usr/sbin:/sbin:/usr/local/go/bin:$(HOME)/.cargo/bin

KERNEL_CRATES := $(shell awk -F'"' '/^name = / { print "-p " $$2; nextfile }' kernel/*/Cargo.toml)

.PHONY: help setup kernel cloud-init deb umem io bench-malloc run test test-long bench fmt lint

help: ## list the goals
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup: ## install what `make run` needs and is missing
	@tools/setup.sh run

kernel: ## build the bootable kernel
	@tools/kernel.sh build -q -p image --release

cloud-init: ## build the program that reads what a cloud says, for disks of `sietch build`
	@tools/cloud-init.sh

umem: ## build build/libumem.so, for LD_PRELOAD on Linux and on Sietch
	@cargo build -q --release -p umem
	@mkdir -p build && cp target/release/libumem.so build/

PREFIX ?= build/io
io: ## install libsietch-io for C programs into build/io, or PREFIX=/usr/local
	@user/sietch-c/install.sh $(PREFIX)

deb: kernel cloud-init ## build build/sietch_VERSION_amd64.deb: the command, the kernel, completions, manual pages
	@cargo build -q --release -p cli -p sietch
	@tools/deb.sh

run: setup kernel ## serve Redis on Sietch, benchmark it once, stay up until Ctrl-C
	@tools/run.sh

test: ## all tests in their short form, with fixed seeds
	@tools/setup.sh test
	@tools/test.sh

test-long: ## the monkey, KVM, the fuzzers and the simulator with full counts
	@tools/setup.sh long
	@tools/test-long.sh

bench: ## compare with Debian's Linux as a guest; writes docs/bench*.md
	@tools/setup.sh bench
	@$(MAKE) -s kernel
	@cargo run -q --release -p bench-frames
	@cargo run -q --release -p bench-guests
	@cargo run -q --release -p bench-network
	@cargo run -q --release -p bench-network -- --own
	@cargo run -q --release -p bench-echo
	@cargo run -q --release -p bench-echo -- --own
	@cargo run -q --release -p bench-kernel
	@cargo run -q --release -p bench-storage
	@cargo run -q --release -p bench-profile
	@cargo run -q --release -p bench-kvm
	@cargo run -q --release -p bench-kvm -- --own
	@$(MAKE) -s bench-malloc

bench-malloc: ## compare libumem.so with other allocators; writes docs/bench-malloc.md
	@tools/setup.sh bench
	@cargo run -q --release -p bench-malloc

fmt: ## format the sources
	@cargo fmt --all

lint: ## tidy, rustfmt and clippy
	@cargo run -q -p tidy
	@cargo fmt --all --check
	@cargo clippy -q --all-targets -- -D warnings
	@tools/kernel.sh clippy -q $(KERNEL_CRATES) -- -D warnings
