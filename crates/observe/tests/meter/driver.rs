//! A meter with a short way to say what arrives.

use observe::meter::{Batch, Cause, Closed, Meter, Settings};
use observe::provision::{Provisioning, Rule};
use observe::report::StreamKey;
use observe::request::Violation;
use observe::serial::Psn;
use observe::window::Window;
use wire::frame::{Addresses, Family, Namespace, Opcode};

pub const READ: Violation = Violation::Opcode(Opcode(0x0c));
/// Milliseconds, as nanoseconds.
pub const MS: u64 = 1_000_000;

/// The stream number `n`: its own QP and source, a destination shared by all.
pub fn stream(n: u8) -> StreamKey {
    let address = |last| {
        let mut octets = [0; 16];
        octets[..4].copy_from_slice(&[10, 0, 0, last]);
        octets
    };
    let (source, destination) = (address(n), address(254));
    StreamKey {
        addresses: Addresses { family: Family::V4, source, destination },
        namespace: Namespace::default(),
        qp: 1000 + u32::from(n),
        pkey: 0xffff,
    }
}

pub fn window(width: u32) -> Window {
    Window::new(width).unwrap()
}

pub fn everything(width: u32) -> Provisioning {
    Provisioning::new(Rule::everything(window(width)).to_vec(), 16).unwrap()
}

pub struct Driver {
    pub meter: Meter,
    pub closed: Vec<Closed>,
    pub time_ns: u64,
}

/// A request.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub key: StreamKey,
    pub psn: Psn,
    pub time_ns: u64,
}

impl Driver {
    pub fn new(settings: Settings) -> Self {
        let meter = Meter::new(everything(8), settings);
        Self { meter, closed: Vec::new(), time_ns: 1000 * MS }
    }

    /// Requests of stream `n`, a millisecond apart.
    pub fn requests(&mut self, n: u8, psns: &[u32]) {
        self.arrive(stream(n), psns);
    }

    pub fn violation(&mut self, n: u8) {
        let closed = &mut self.closed;
        self.meter.violation(&stream(n), self.time_ns, READ, &mut |c| closed.push(c));
        self.time_ns += MS;
    }

    pub fn arrive(&mut self, key: StreamKey, psns: &[u32]) {
        let mut arrivals = Vec::new();
        for psn in psns {
            arrivals.push(Arrival { key, psn: Psn::new(*psn), time_ns: self.time_ns });
            self.time_ns += MS;
        }
        self.observe(&arrivals);
    }

    /// In batches that are as full as they can be.
    pub fn observe(&mut self, arrivals: &[Arrival]) {
        let closed = &mut self.closed;
        let mut batch = Batch::new();
        for (index, arrival) in arrivals.iter().enumerate() {
            *batch.next_key() = arrival.key;
            if batch.push(arrival.psn, arrival.time_ns) || index + 1 == arrivals.len() {
                self.meter.observe(&batch, &mut |c| closed.push(c));
                batch.clear();
            }
        }
    }

    pub fn gap(&mut self) {
        let closed = &mut self.closed;
        self.meter.capture_gap(Cause::CaptureGap, &mut |c| closed.push(c));
    }

    pub fn gap_between(&mut self, n: u8) {
        let closed = &mut self.closed;
        let addresses = stream(n).addresses;
        self.meter.capture_gap_between(&addresses, Cause::IcrcMismatch, &mut |c| closed.push(c));
    }

    pub fn provision(&mut self, provisioning: Provisioning) {
        let closed = &mut self.closed;
        self.meter.provision(provisioning, &mut |c| closed.push(c));
    }

    /// Ends the observation; what has closed is taken: QP, cause, requests.
    pub fn finish(mut self) -> Vec<(u32, Cause, u64)> {
        let closed = &mut self.closed;
        self.meter.finish(&mut |c| closed.push(c));
        self.taken()
    }

    pub fn taken(&mut self) -> Vec<(u32, Cause, u64)> {
        let mut taken = Vec::new();
        for closed in self.closed.drain(..) {
            closed.snapshot.check().unwrap();
            assert_eq!(closed.snapshot.counts.pending, 0, "a final has nothing pending");
            let key = closed.snapshot.key;
            taken.push((key.qp - 1000, closed.cause, closed.snapshot.counts.requests));
        }
        taken
    }
}
