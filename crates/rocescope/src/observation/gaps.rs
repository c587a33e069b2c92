//! What the capture itself says that it does not hold, and what that does to open epochs: faults of
//! frames, holes in a mirror's numbers, drop counters (sequence draft, section 3).

use observe::coverage::MirrorStep;
use observe::meter::Cause;
use wire::capture::{Record, Statistics};
use wire::frame::{Addresses, Fault, Frame, Mirror};

use super::received::Followed;
use super::{Counter, Missed, Pipeline, Sink};
use crate::capture::Drops;

impl<S: Sink> Pipeline<S> {
    /// As with a wrong ICRC: what the frame says cannot be relied on.
    // SEQ-3.8, PFC-count.4
    pub(super) fn damaged_on_the_link(&mut self, record: &Record<'_>, body: &Frame) {
        self.tally.damaged += 1;
        self.damaged_for_pfc(record);
        match body {
            Frame::Roce(packet) => self.gap_between(&packet.addresses, Cause::Damaged),
            _ => self.gap(Cause::Damaged),
        }
    }

    // SEQ-3.7, SEQ-3.8
    pub(super) fn fault(&mut self, fault: &Fault) {
        self.tally.fault(fault);
        let cause = match fault {
            // A later fragment says nothing of its port; its first fragment did what was needed.
            Fault::Fragment { roce, .. } if !roce => return,
            Fault::Fragment { .. } | Fault::CarrierFragment { .. } => Cause::Fragment,
            Fault::Truncated { .. } => Cause::CaptureTruncated,
            Fault::LengthLies { .. } => Cause::LengthLies,
            // All of it was seen, and it is no request of any connection.
            Fault::NoRoomForBth { .. } => return,
        };
        match fault.addresses() {
            Some(addresses) => self.gap_between(&addresses, cause),
            None => self.gap(cause),
        }
    }

    /// Reads the number of a mirrored packet.
    // SEQ-3.7, SEQ-10.3
    pub(super) fn mirrored(&mut self, interface: u32, mirror: &Mirror) -> Followed {
        let session = (mirror.addresses, mirror.kind, mirror.session);
        let Some(sequence) = mirror.sequence else { return Followed::InTurn };
        match self.mirror.step(session, sequence) {
            MirrorStep::Next => {}
            MirrorStep::Behind => {
                self.tally.mirror_behind += 1;
                return Followed::Behind;
            }
            MirrorStep::NotFollowed => {
                self.tally.mirror_not_followed += 1;
                return Followed::Not;
            }
            MirrorStep::Restarted => {
                self.tally.mirror_restarts += 1;
                self.sink.missed(Some(interface), Missed::MirrorRestarted, 1);
                self.gap(Cause::MirrorRestarted);
            }
            MirrorStep::Missing(count) => {
                self.tally.mirror_missing += u64::from(count);
                self.sink.missed(Some(interface), Missed::MirrorMissing, u64::from(count));
                self.gap(Cause::MirrorGap);
            }
        }
        Followed::InTurn
    }

    /// Drops that are said to lie between this packet and the one before on its interface.
    pub(super) fn drops_before(&mut self, interface: u32, drops: u64) {
        self.tally.capture_drops = self.tally.capture_drops.saturating_add(drops);
        if let Some(counter) = self.counter(interface) {
            counter.drops.tell(drops);
        }
        if drops > 0 {
            self.sink.missed(Some(interface), Missed::Dropped, drops);
        }
        self.reading(interface, drops > 0);
    }

    pub(super) fn statistics(&mut self, statistics: &Statistics) {
        let Some(counter) = self.counter(statistics.interface) else { return };
        let Some(Drops { packets, reset }) = counter.drops.read(statistics) else { return };
        self.tally.capture_drops = self.tally.capture_drops.saturating_add(packets);
        if packets > 0 {
            self.sink.missed(Some(statistics.interface), Missed::Dropped, packets);
        }
        if reset {
            self.sink.missed(Some(statistics.interface), Missed::DropsUnknown, 1);
        }
        self.reading(statistics.interface, reset || packets > 0);
    }

    pub(super) fn counter(&mut self, interface: u32) -> Option<&mut Counter> {
        self.counters.get_mut(usize::try_from(interface).ok()?)
    }

    /// A reading of an interface's drop counter.
    pub(super) fn reading(&mut self, interface: u32, dropped: bool) {
        if dropped {
            self.gap(Cause::CaptureDrops);
        } else {
            self.flush();
        }
        self.reading_at(interface, self.position(), dropped);
    }

    pub(super) fn reading_at(&mut self, interface: u32, position: u64, dropped: bool) {
        let Some(counter) = self.counter(interface).map(|counter| counter.number) else { return };
        let sink = &mut self.sink;
        self.coverage.reading(counter, position, dropped, &mut |c| sink.closed(c));
    }

    /// The counters of a section will not be read again.
    pub(super) fn end_counters(&mut self) {
        self.flush();
        let sink = &mut self.sink;
        self.coverage.finish(&mut |c| sink.closed(c));
        self.counters.clear();
    }

    pub(super) fn gap(&mut self, cause: Cause) {
        self.flush();
        self.on_meter(|meter, out| meter.capture_gap(cause, &mut |c| out(c)));
    }

    pub(super) fn gap_between(&mut self, addresses: &Addresses, cause: Cause) {
        self.flush();
        self.on_meter(|meter, out| meter.capture_gap_between(addresses, cause, &mut |c| out(c)));
    }
}
