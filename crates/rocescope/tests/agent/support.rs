//! Frames to observe, and a collector that holds every report to section 7.

use std::collections::BTreeMap;

use observe::collect::{self, Retired, Session, Verdict};
use observe::meter::Settings;
use observe::pfc::instance::InstanceId;
use observe::pfc::{Reading, record};
use observe::profile::{Binding, BindingError, Lengths};
use observe::provision::{Provisioning, Rule};
use observe::report::Report;
use observe::window::Window;
use rocescope::agent::disabled::Disabled;
use rocescope::agent::session::{ExportSession, Now, SessionSettings};
use rocescope::capture::Visitor as _;
use rocescope::meter::{Observation, Place};
use wire::capture::{FrameCheck, Record};
use wire::element::Mapping;
use wire::frame::{Layer, LinkType};
use wire::ipfix::{Decoder, Event, Frame, Limits, Transport, frame};

pub const DOMAIN: u32 = 7;
pub const POINT: u64 = 9;
/// RC SEND only, and RC RDMA READ request.
pub const SEND: u8 = 0x04;
pub const READ: u8 = 0x0c;

/// A RoCEv2 frame over IPv4: from 10.0.0.1 to 10.0.0.2.
pub fn roce(qp: u32, opcode: u8, psn: u32) -> Vec<u8> {
    // READ requests have a header of sixteen octets behind the BTH.
    let extension = if opcode == READ { 16 } else { 0 };
    let udp_len: u16 = 8 + 12 + extension + 4;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0]);
    frame.extend((20 + udp_len).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0xc0, 0x00]);
    frame.extend(4791_u16.to_be_bytes());
    frame.extend(udp_len.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend([opcode, 0, 0xff, 0xff]);
    frame.extend(qp.to_be_bytes());
    frame.extend(psn.to_be_bytes());
    frame.resize(frame.len() + usize::from(extension) + 4, 0);
    frame
}

pub fn rules(window: u32) -> Provisioning {
    let rules = Rule::everything(Window::new(window).expect("a window")).to_vec();
    Provisioning::new(rules, 8).expect("attested")
}

pub fn settings() -> SessionSettings {
    SessionSettings {
        observation: Observation { layer: Layer::Outer, check_icrc: false, sliced: false },
        place: Place { domain: DOMAIN, point: POINT },
        mapping: Mapping::default(),
        extended: false,
        meter: Settings { periodic: true, ..Settings::default() },
        finals_waiting_max: 1000,
        finals_queued_max: 1000,
        mirror_sessions_max: 8,
        report_interval_ms: 1000,
        sign_of_life_ms: 20_000,
    }
}

pub fn at(monotonic_ms: u64) -> Now {
    Now { monotonic_ms, export_s: 1_700_000_000 }
}

pub fn begun(settings: SessionSettings) -> ExportSession {
    ExportSession::new(settings, rules(16), &Disabled::new(64), at(0)).expect("a session")
}

/// Shows a session one frame.
pub fn show(session: &mut ExportSession, time_ms: u64, frame: &[u8]) {
    session.packet(&Record {
        interface: 0,
        link: Ok(LinkType::Ethernet),
        time_ns: Some(time_ms * 1_000_000),
        original_len: u32::try_from(frame.len()).expect("short"),
        data: frame,
        drops_before: None,
        damaged: false,
        check: FrameCheck::Untold,
        outbound: false,
    });
}

/// Shows a session a run of SENDs.
pub fn sends(session: &mut ExportSession, time_ms: u64, qp: u32, psns: impl Iterator<Item = u32>) {
    for psn in psns {
        show(session, time_ms, &roce(qp, SEND, psn));
    }
}

/// The collecting side of one Transport Session.
pub struct Collector {
    decoder: Decoder,
    bindings: BTreeMap<u16, Binding>,
    pub session: Session,
    pub heard: Vec<(Report, Verdict)>,
    pub messages: u64,
    /// Readings of PFC counters, with the instance where there is one.
    pub readings: Vec<(Reading, Option<InstanceId>)>,
    pfc: BTreeMap<u16, record::Binding>,
    octets: Vec<u8>,
    /// Everything that came, as it came.
    pub all: Vec<u8>,
}

impl Collector {
    pub fn new() -> Self {
        Self {
            decoder: Decoder::new(Transport::Stream, Mapping::default(), Limits::default()),
            bindings: BTreeMap::new(),
            session: Session::new(collect::Limits::default(), 3),
            heard: Vec::new(),
            messages: 0,
            readings: Vec::new(),
            pfc: BTreeMap::new(),
            octets: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Takes octets as they come.
    pub fn receive(&mut self, octets: &[u8], now_ms: u64) {
        self.all.extend_from_slice(octets);
        self.octets.extend_from_slice(octets);
        let all = std::mem::take(&mut self.octets);
        let mut rest = &all[..];
        while let Frame::Message { octets, rest: behind } = frame(rest).expect("IPFIX") {
            self.message(octets, now_ms);
            rest = behind;
        }
        self.octets = rest.to_vec();
    }

    fn message(&mut self, octets: &[u8], now_ms: u64) {
        let Self { decoder, bindings, pfc, readings, .. } = self;
        let mut reports = Vec::new();
        let header = decoder.message(octets, &mut |event| match event {
            Event::Template { layout, .. } => {
                if let Ok(binding) = record::Binding::new(layout, &Mapping::default()) {
                    pfc.insert(layout.id(), binding);
                    return;
                }
                match Binding::new(layout, &Mapping::default(), Lengths::Full) {
                    Ok(binding) => _ = bindings.insert(layout.id(), binding),
                    Err(BindingError::NotProfile) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Event::Data(data) => {
                if let Some(binding) = pfc.get(&data.layout.id()) {
                    for record in data.records {
                        let reading = binding.read(DOMAIN, &record).expect("a reading");
                        readings.push((reading, binding.instance(&record)));
                    }
                    return;
                }
                let Some(binding) = bindings.get(&data.layout.id()) else { return };
                for record in data.records {
                    reports.push(binding.read(&record).expect("a report"));
                }
            }
            Event::TypeInformation(_) => {}
            other => panic!("{other:?}"),
        });
        let header = header.expect("a message");
        self.messages += 1;
        for (point, report) in reports {
            let verdict = self.session.receive(header.domain, point, &report, now_ms);
            self.heard.push((report, verdict));
        }
    }

    /// Takes all that a session has to say.
    pub fn listen(&mut self, session: &mut ExportSession, now: Now) {
        let mut octets = Vec::new();
        while session.transmit(now, &mut octets).expect("octets") {}
        self.receive(&octets, now.monotonic_ms);
    }

    /// What is heard from here on, all of it accepted.
    #[track_caller]
    pub fn accepted(&mut self) -> Vec<Report> {
        let heard = std::mem::take(&mut self.heard);
        for (report, verdict) in &heard {
            assert!(matches!(verdict, Verdict::Accepted { .. }), "{verdict:?}: {report:?}");
        }
        heard.into_iter().map(|(report, _)| report).collect()
    }

    /// Ends the session and gives what is stored of its epochs, by id.
    pub fn end(self) -> Vec<Retired> {
        let mut retired = Vec::new();
        self.session.end(&mut |epoch| retired.push(epoch));
        retired.sort_by_key(|epoch| epoch.epoch.latest.epoch_id);
        retired
    }
}
