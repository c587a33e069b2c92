# make demo    the meter on a real capture, then agent and collector over TLS
# make test    everything that has to pass
# make check   the quick part of it: format, lints, requirements
# make bench   the meter against the floor and other programs (minutes, 3 GB of disk)
# make fuzz TARGET=frame|capture|ipfix|netconf|restconf|selection|subscriptions [SECONDS=60]

.PHONY: demo test check bench fuzz fuzz-build
export PATH := $(HOME)/.cargo/bin:$(PATH)

CAPTURES := tests/captures/softroce
ROCESCOPE := $${CARGO_TARGET_DIR:-target}/release/rocescope
METER := $(ROCESCOPE) meter --attest-all

demo:
	@scripts/setup.sh demo
	cargo build --release --package rocescope
	@echo
	@echo "Eight connections write over a link that loses 1 packet in 100, seen behind the loss: the"
	@echo "receiver never saw some PSNs the first time (skipped), and saw them later (filled)."
	$(METER) $(CAPTURES)/g4_write_q8_loss1.rcv.pcap
	@echo
	@echo "The same and more, live: an agent plays captures to a collector over mutual TLS, and one of"
	@echo "its sessions is cut half way. The collector keeps an outcome for every epoch."
	@echo
	$(ROCESCOPE) demo --once

test:
	@scripts/setup.sh test
	cargo xtask ci

check:
	cargo xtask ci --quick

bench:
	@scripts/setup.sh bench
	cargo xtask bench

fuzz-build:
	cd fuzz/harness && cargo build --locked

TARGET ?= frame
SECONDS ?= 60
fuzz:
	mkdir -p fuzz/harness/corpus/$(TARGET)
	cd fuzz/harness && cargo run --locked --release --bin $(TARGET) -- -max_total_time=$(SECONDS) -timeout=10 corpus/$(TARGET) ../corpus/$(TARGET)
