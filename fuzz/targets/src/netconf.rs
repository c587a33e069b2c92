//! A session of NETCONF: octets as they come, in any pieces.

use manage::netconf::framing::{Decoder, Framing, framed};
use manage::netconf::{End, Session, Then};

use crate::answers::{document, nothing_hidden, xml_data};
use crate::served::{Served, USER, limits, schema};

const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
/// Requests of one input.
const REQUESTS_MAX: usize = 12;
/// Messages of subscriptions of one input.
const MESSAGES_MAX: usize = 64;

/// The first octet says where the stream is cut, the second what the rest is: a stream as it is, or
/// messages with a zero octet between them, which are framed by 1.0 or 1.1 behind a hello, or
/// operations, which are put into messages as well.
///
/// # Panics
/// Where something does not hold.
pub fn netconf(data: &[u8]) {
    let [cut, kind, rest @ ..] = data else { return };
    let stream = stream(*kind, rest);
    let whole = answers(true, &stream, stream.len().max(1));
    for reply in &whole.sent {
        checked(&stream, reply);
    }
    let cut = answers(true, &stream, usize::from(*cut).max(1));
    assert_eq!(whole, cut, "the same answers however the stream is cut");
    assert_eq!(whole, answers(false, &stream, stream.len().max(1)), "nothing hidden is told");
}

fn stream(kind: u8, rest: &[u8]) -> Vec<u8> {
    if kind.is_multiple_of(4) {
        return rest.to_vec();
    }
    let (framing, version) = match kind % 4 {
        1 => (Framing::EndOfMessage, "1.0"),
        _ => (Framing::Chunked, "1.1"),
    };
    let hello = format!(
        "<hello xmlns='{BASE}'><capabilities><capability>urn:ietf:params:netconf:base:{version}\
         </capability></capabilities></hello>"
    );
    let mut out = framed(Framing::EndOfMessage, &hello);
    for message in rest.split(|octet| *octet == 0) {
        let text = String::from_utf8_lossy(message);
        let text = match kind % 4 {
            3 => format!(
                "<rpc xmlns='{BASE}' message-id='1' \
                 xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces' \
                 xmlns:q='urn:ietf:params:xml:ns:yang:ietf-pfc-queue-telemetry' \
                 xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores' \
                 xmlns:n='urn:ietf:params:xml:ns:yang:ietf-netconf-nmda' \
                 xmlns:m='urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring' \
                 xmlns:s='urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications' \
                 xmlns:p='urn:ietf:params:xml:ns:yang:ietf-yang-push'>{text}</rpc>"
            ),
            _ => text.into_owned(),
        };
        if !text.is_empty() {
            out.extend(framed(framing, &text));
        }
    }
    out
}

/// What was sent, and how the session was left.
#[derive(Debug, PartialEq)]
struct Answers {
    sent: Vec<Vec<u8>>,
    end: Option<&'static str>,
    greeted: bool,
}

fn answers(hidden: bool, stream: &[u8], piece: usize) -> Answers {
    let served = Served::new(hidden);
    let (mut session, hello) = Session::new(schema(), USER, 4, limits());
    let mut sent = vec![hello];
    let mut end = None;
    let mut requests = 0;
    'stream: for piece in stream.chunks(piece) {
        session.take(piece);
        loop {
            let request = match session.next_request() {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    // What was found depends on how much had come.
                    end = Some(match error {
                        End::Framing(_) => "framing",
                        End::Hello(_) => "hello",
                    });
                    break 'stream;
                }
            };
            requests += 1;
            let (reply, then) = served.answer(&mut session, &request);
            let most = 32 * request.len() + Served::WHOLE_OCTETS + schema_octets(&request);
            assert!(reply.len() <= most, "{} octets for {request}", reply.len());
            sent.push(reply);
            if then == Then::Close || requests >= REQUESTS_MAX {
                end = Some("closed");
                break 'stream;
            }
        }
    }
    // Whatever was subscribed to.
    served.publish(0b11_1111, 0);
    served.later(60_000);
    let ids = served.subscriptions.borrow_mut().ready();
    for id in ids {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = served.take(id) else { break };
            sent.push(session.notification_text(&message.time(), &message.content()));
        }
    }
    Answers { sent, end, greeted: session.greeted() }
}

/// A module can be longer than everything else.
fn schema_octets(request: &str) -> usize {
    if request.contains("get-schema") { 400_000 } else { 0 }
}

fn checked(question: &[u8], octets: &[u8]) {
    let mut decoder = Decoder::new(1 << 22);
    if octets.starts_with(b"\n#") {
        decoder.set_framing(Framing::Chunked);
    }
    decoder.take(octets);
    let text = decoder.next_message().expect("framed").expect("a whole message");
    assert_eq!(decoder.next_message(), Ok(None));
    nothing_hidden(question, &text);
    let parsed = document(&text);
    let root = parsed.root_element();
    match root.tag_name().name() {
        "hello" | "notification" => {}
        "rpc-reply" => {
            assert_eq!(root.tag_name().namespace(), Some(BASE));
            let content: Vec<_> = root.children().collect();
            assert!(content.iter().all(roxmltree::Node::is_element), "{text}");
            assert!(!content.is_empty(), "an answer says something: {text}");
            for node in content {
                if node.tag_name().name() != "data" || text.contains("-monitoring\">module ") {
                    continue;
                }
                let inner: Vec<_> = node.children().collect();
                if let (Some(first), Some(last)) = (inner.first(), inner.last())
                    && first.is_element()
                {
                    xml_data(&text[first.range().start..last.range().end]);
                }
            }
        }
        other => panic!("{other}: {text}"),
    }
}
