//! What stands beside an epoch: PFC counters of the interface at which its flow was seen, of the
//! priority that its traffic class had, from the time of the flow (PFC draft, introduction and
//! record identity).
//!
//! The configuration says which interface and which priority; nothing else does. Numbers of the flow
//! and of counters stand next to each other, and none is made of both.
// PFC-cor.1

use axum::extract::{RawQuery, State};
use axum::response::Response;
use observe::outcome::BESIDE;
use observe::pfc::Priority;
use observe::pfc::beside::{Apart, around};
use store::{EpochRow, PfcFilter, PfcPoint, PfcRow, Reader, StoreError};

use super::answer::{Problem, json};
use super::epochs::{self, Segments};
use super::parameters::Parameters;
use super::{Shared, State as Served, pfc};
use crate::config::{FlowOf, PfcDevice, PfcFlows};
use crate::meter::json;
use crate::meter::pfc::interval;

/// `GET /api/v1/epochs/{session}/{domain}/{epochId}/pfc`.
pub(super) async fn get(
    State(state): Shared,
    path: Segments,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let key @ (session, domain, id) = epochs::key(path)?;
    let served = state.clone();
    let read = move |reader: &Reader| {
        let Some(row) = reader.epoch(session, domain, id)? else { return Ok(None) };
        answer(&served, reader, &row).map(Some)
    };
    let body = state.pool.read(read).await?;
    Ok(json(body.ok_or_else(|| epochs::missing(key))?))
}

/// Where a flow was seen, and which priority it had.
struct Traffic<'s> {
    place: &'s PfcFlows,
    device: &'s PfcDevice,
    priority: Result<Priority, Apart>,
}

fn traffic<'s>(
    state: &'s Served,
    reader: &Reader,
    row: &EpochRow,
) -> Result<Option<Traffic<'s>>, StoreError> {
    let beside = &state.config.pfc;
    // The newest session up to this one: itself, as its epoch is there.
    let sessions = reader.sessions(1, Some(row.session.0.saturating_add(1)))?;
    let Some(session) = sessions.rows.iter().find(|found| found.session == row.session) else {
        return Ok(None);
    };
    let snapshot = &row.epoch.latest.snapshot;
    let place = beside.place(&FlowOf {
        exporter: &session.facts.peer,
        domain: row.domain,
        point: row.epoch.point,
        addresses: &snapshot.key.addresses,
    });
    Ok(place.and_then(|place| {
        let device = beside.device(&place.device)?;
        let priority = beside.priority(place, snapshot.start_ms, snapshot.end_ms);
        Some(Traffic { place, device, priority })
    }))
}

fn answer(state: &Served, reader: &Reader, row: &EpochRow) -> Result<Vec<u8>, StoreError> {
    let traffic = traffic(state, reader, row)?;
    let snapshot = &row.epoch.latest.snapshot;
    let mut counters = Vec::new();
    let mut more = false;
    let mut apart = match &traffic {
        None => Some(Apart::PlaceUnknown),
        Some(Traffic { priority: Err(apart), .. }) => Some(*apart),
        Some(Traffic { place, device, priority: Ok(priority) }) => {
            let filter = PfcFilter {
                exporter: Some(device.exporter.clone()),
                domain: Some(device.domain),
                interface: Some(place.interface),
                priority: Some(priority.get()),
                kept_since_ms: Some(snapshot.start_ms),
                limit: usize::try_from(state.config.limits.http_page_max).unwrap_or(usize::MAX),
                ..PfcFilter::default()
            };
            let page = reader.pfc_counters(&filter)?;
            more = page.next.is_some();
            counters = page.rows;
            counters.is_empty().then_some(Apart::NoCounter)
        }
    };
    let mut listed = Vec::new();
    let mut any = false;
    for counter in &counters {
        let kept = reader.pfc_history(counter.state.session, counter.state.number)?;
        let points = points(counter, kept.map(|(_, points)| points).unwrap_or_default());
        if !listed.is_empty() {
            listed.push(b',');
        }
        any |= append(&mut listed, state, counter, &points, [snapshot.start_ms, snapshot.end_ms]);
    }
    if !any && apart.is_none() {
        apart = Some(Apart::NoReadings);
    }
    let mut body = b"{\"record\":\"beside\",\"epoch\":".to_vec();
    epochs::epoch(&mut body, row);
    place(&mut body, traffic.as_ref());
    json::text(&mut body, "state", if apart.is_none() { "beside" } else { "unknown" });
    match apart {
        Some(apart) => json::text(&mut body, "reason", apart.words()),
        None => body.extend_from_slice(b",\"reason\":null"),
    }
    body.extend_from_slice(b",\"counters\":[");
    body.append(&mut listed);
    body.extend_from_slice(if more { b"],\"more\":true" } else { b"],\"more\":false" });
    json::text(&mut body, "meaning", BESIDE);
    body.push(b'}');
    Ok(body)
}

fn place(body: &mut Vec<u8>, traffic: Option<&Traffic<'_>>) {
    match traffic {
        Some(Traffic { place, priority, .. }) => {
            json::text(body, "device", &place.device);
            json::text(body, "port", &place.port);
            json::number(body, "interface", u64::from(place.interface));
            json::number(body, "trafficClass", place.class as u64);
            match priority {
                Ok(priority) => json::number(body, "pfcPriority", u64::from(priority.get())),
                Err(_) => body.extend_from_slice(b",\"pfcPriority\":null"),
            }
        }
        None => body.extend_from_slice(
            b",\"device\":null,\"port\":null,\"interface\":null,\"trafficClass\":null,\
              \"pfcPriority\":null",
        ),
    }
}

/// What is kept of a counter's readings, in their order: those for charts, and the two latest.
fn points(row: &PfcRow, mut points: Vec<PfcPoint>) -> Vec<PfcPoint> {
    let counter = &row.state.counter;
    let received_ms = row.state.received_ms;
    let mut add = |sighting, number: u64, unbroken| {
        if points.iter().all(|point| point.number != number) {
            points.push(PfcPoint { received_ms, sighting, number, unbroken });
        }
    };
    if let (Some(earlier), Some(number)) = (counter.earlier, counter.readings.checked_sub(1)) {
        // What holds since before it holds for it; otherwise nothing is known before it.
        add(earlier, number, counter.unbroken.min(number));
    }
    add(counter.latest, counter.readings, counter.unbroken);
    points.sort_by_key(|point| point.number);
    points
}

/// Appends a counter, with what it counted between the two readings around a flow. Says whether
/// there are two.
// PFC-sem.2, PFC-cor.1
fn append(
    body: &mut Vec<u8>,
    state: &Served,
    row: &PfcRow,
    points: &[PfcPoint],
    [first_ms, last_ms]: [u64; 2],
) -> bool {
    let times: Vec<u64> = points.iter().map(|point| point.sighting.reading.time_ms).collect();
    let found = around(&times, first_ms, last_ms);
    let scope = &row.state.counter.latest.reading.scope;
    body.extend_from_slice(b"{\"direction\":\"");
    body.extend_from_slice(scope.direction.word().as_bytes());
    body.push(b'"');
    json::number(body, "observationDomainId", u64::from(scope.domain));
    json::number(body, "observationPointId", scope.point);
    json::number(body, "session", row.state.session.0);
    json::number(body, "counter", row.state.number);
    pfc::whose(body, state, row);
    let Some(around) = found else {
        body.extend_from_slice(
            b",\"earlier\":null,\"later\":null,\"wholeFlow\":false,\
              \"interval\":{\"state\":\"unknown\"",
        );
        json::text(body, "reason", Apart::NoReadings.words());
        body.extend_from_slice(b",\"sinceMilliseconds\":null},\"rate\":{\"state\":\"unknown\"");
        json::text(body, "reason", Apart::NoReadings.words());
        body.extend_from_slice(b"}}");
        return false;
    };
    let (earlier, later) = (&points[around.earlier], &points[around.later]);
    for (name, point) in [("earlier", earlier), ("later", later)] {
        let reading = &point.sighting.reading;
        body.extend_from_slice(format!(",\"{name}\":{{\"record\":\"pfcReading\"").as_bytes());
        json::number(body, "observationTimeMilliseconds", reading.time_ms);
        json::number(body, "pfcControlFrameTotalCount", reading.total);
        body.push(b'}');
    }
    body.extend_from_slice(match around.whole {
        true => b",\"wholeFlow\":true",
        false => b",\"wholeFlow\":false",
    });
    interval(body, Some(&earlier.sighting), later.since(earlier));
    body.push(b'}');
    true
}
