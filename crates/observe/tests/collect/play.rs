//! What the lines of a conversation do: reports go out through the exporter, over octets, and come
//! back through decoder and binding to the session.

use std::collections::BTreeMap;

use observe::collect::{Epoch, Limits, Retired, Session, Verdict};
use observe::export::{Exporter, Numbering};
use observe::meter::{Batch, Cause, Closed, Meter, Settings};
use observe::profile::{Binding, Lengths};
use observe::provision::{Provisioning, Rule};
use observe::report::Report;
use observe::request::Violation;
use observe::serial::Psn;
use observe::window::Window;
use wire::element::Mapping;
use wire::frame::Opcode;
use wire::ipfix::{self, Decoder, Event, Transport};

use crate::words::Words;

/// One Transport Session with both of its sides, and a meter in front of it.
pub struct Play {
    now_ms: u64,
    limits: Limits,
    session: Session,
    decoder: Decoder,
    bindings: BTreeMap<(u32, u16), Binding>,
    exporters: BTreeMap<(u32, u64), Exporter>,
    numbering: Numbering,
    meter: Meter,
    closed: Vec<Closed>,
}

impl Play {
    pub fn new() -> Self {
        Self::with(Limits::default(), 0)
    }

    // SEQ-4.6: nothing of an earlier session is here.
    fn with(limits: Limits, now_ms: u64) -> Self {
        let rules = Rule::everything(Window::new(4).unwrap()).to_vec();
        let settings =
            Settings { idle_ns: Some(10_000_000_000), periodic: true, ..Settings::default() };
        Self {
            now_ms,
            limits,
            session: Session::new(limits, 1),
            decoder: Decoder::new(Transport::Stream, Mapping::default(), ipfix::Limits::default()),
            bindings: BTreeMap::new(),
            exporters: BTreeMap::new(),
            numbering: Numbering::default(),
            meter: Meter::new(Provisioning::new(rules, 16).unwrap(), settings),
            closed: Vec::new(),
        }
    }

    /// Does what a line says, and gives what came of it.
    pub fn line(&mut self, verb: &str, words: &[&str]) -> Vec<String> {
        let mut words = Words::new(words);
        let found = match verb {
            "report" => {
                let (domain, point) = (words.small("domain", 1), words.number("point", 1));
                let report = words.report();
                self.send(domain, point, &report)
            }
            "limits" => {
                let size = |n: u64| usize::try_from(n).unwrap();
                self.limits = Limits {
                    domains_max: size(words.number("domains", 64)),
                    epochs_max: size(words.number("epochs", 100)),
                    inactivity_ms: words.number("inactivity", 60_000),
                    closed_retention_ms: words.number("retention", 10_000),
                };
                *self = Self::with(self.limits, self.now_ms);
                Vec::new()
            }
            "at" => {
                self.now_ms = words.first();
                Vec::new()
            }
            "dropped" => {
                self.session.dropped(words.small("domain", 1));
                Vec::new()
            }
            "retire" => {
                let mut retired = Vec::new();
                self.session.retire(self.now_ms, &mut |r| retired.push(r));
                told(retired)
            }
            "end" => {
                let fresh = Self::with(self.limits, self.now_ms);
                let ended = std::mem::replace(self, fresh);
                let mut retired = Vec::new();
                ended.session.end(&mut |r| retired.push(r));
                told(retired)
            }
            "show" => {
                let (domain, id) = (words.small("domain", 1), words.number("epoch", 1));
                vec![self.session.epoch(domain, id).map_or("nothing".into(), shown)]
            }
            "high" => {
                let high = self.session.high_water(words.small("domain", 1));
                vec![high.map_or("none".into(), |id| id.to_string())]
            }
            "kept" => vec![self.session.len().to_string()],
            _ => self.metered(verb, &mut words),
        };
        words.none_left();
        found
    }

    /// Lines about the meter.
    fn metered(&mut self, verb: &str, words: &mut Words<'_>) -> Vec<String> {
        let time_ns = self.now_ms * 1_000_000;
        let closed = &mut self.closed;
        let mut out = |c| closed.push(c);
        match verb {
            "request" => {
                let key = words.stream();
                for psn in words.list("psn") {
                    let mut batch = Batch::new();
                    *batch.next_key() = key;
                    batch.push(Psn::new(psn), time_ns);
                    self.meter.observe(&batch, &mut out);
                }
            }
            "violation" => {
                let read = Violation::Opcode(Opcode(0x0c));
                self.meter.violation(&words.stream(), time_ns, read, &mut out);
            }
            "gap" => self.meter.capture_gap(Cause::CaptureGap, &mut out),
            "generation" => _ = self.meter.new_generation(&words.stream(), &mut out),
            "reprovision" => return vec![self.meter.reprovision(&words.stream()).to_string()],
            "idle" => self.meter.advance_time(time_ns, &mut out),
            "finish" => self.meter.finish(&mut out),
            "export" => return self.export(),
            other => panic!("{other}: no such line"),
        }
        Vec::new()
    }

    /// Numbers and sends what has closed, then what has changed.
    fn export(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        for mut closed in self.closed.drain(..) {
            reports.push(self.numbering.number(&mut closed.ids, closed.snapshot));
        }
        let numbering = &mut self.numbering;
        let mut late = Vec::new();
        self.meter.take_changed(&mut |c| late.push(c), |ids, snapshot| {
            reports.push(numbering.number(ids, snapshot));
        });
        assert_eq!(late, [], "report ids do not end here");
        let mut told = Vec::new();
        for report in reports {
            let c = report.snapshot.counts;
            let verdict = self.send(1, 1, &report).remove(0);
            let flags: String = report.snapshot.flags.names().map(|n| format!(" {n}")).collect();
            told.push(format!(
                "epoch={} id={} requests={} skipped={} filled={} pending={} abandoned={}{flags}: {verdict}",
                report.epoch_id, report.report_id, c.requests, c.skipped, c.filled, c.pending, c.abandoned,
            ));
        }
        told
    }

    fn send(&mut self, domain: u32, point: u64, report: &Report) -> Vec<String> {
        let Self { session, decoder, bindings, exporters, now_ms, .. } = self;
        let mut octets = Vec::new();
        let exporter = exporters.entry((domain, point)).or_insert_with(|| {
            let mut new = Exporter::new(Mapping::default(), domain, point, 1400).unwrap();
            new.begin(0, &mut octets).unwrap();
            new
        });
        exporter.reports(std::slice::from_ref(report), 0, &mut octets).unwrap();
        let mut verdicts = Vec::new();
        let mut rest = &octets[..];
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let message;
            (message, rest) = rest.split_at(length);
            let visited = decoder.message(message, &mut |event| match event {
                Event::Template { layout, .. } => {
                    if let Ok(b) = Binding::new(layout, &Mapping::default(), Lengths::Full) {
                        bindings.insert((domain, layout.id()), b);
                    }
                }
                Event::Data(set) => {
                    let Some(binding) = bindings.get(&(domain, set.layout.id())) else { return };
                    for record in set.records {
                        verdicts.push(match binding.read(&record) {
                            Ok((point, report)) => {
                                word(session.receive(domain, point, &report, *now_ms))
                            }
                            Err(error) => format!("unreadable: {error}"),
                        });
                    }
                }
                _ => {}
            });
            visited.unwrap();
        }
        assert_eq!(verdicts.len(), 1, "one record was sent");
        verdicts
    }
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accepted { missing, last: false } => format!("accepted missing={missing}"),
        Verdict::Accepted { missing, last: true } => format!("accepted missing={missing} last"),
        Verdict::Repeated => "repeated".into(),
        Verdict::Stale => "stale".into(),
        Verdict::Rejected(why) => format!("rejected: {why}"),
        Verdict::Invalidated(why) => format!("invalidated: {why}"),
    }
}

fn told(mut retired: Vec<Retired>) -> Vec<String> {
    retired.sort_by_key(|r| (r.domain, r.epoch.latest.epoch_id));
    let line = |r: &Retired| {
        let domain = if r.domain == 1 { String::new() } else { format!("domain={} ", r.domain) };
        let id = r.epoch.latest.epoch_id;
        format!("{domain}epoch={id} {}{}", r.outcome.word(), qualifications(&r.epoch))
    };
    retired.iter().map(line).collect()
}

fn shown(epoch: &Epoch) -> String {
    let Report { report_id, snapshot, .. } = &epoch.latest;
    let (requests, missing) = (snapshot.counts.requests, epoch.missing);
    let (outcome, others) = (epoch.outcome().word(), qualifications(epoch));
    format!("id={report_id} requests={requests} missing={missing} {outcome}{others}")
}

fn qualifications(epoch: &Epoch) -> String {
    epoch.qualifications().iter().map(|q| format!(" {}", q.word())).collect()
}
