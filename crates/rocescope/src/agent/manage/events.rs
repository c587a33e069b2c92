//! The body of an answer: octets that are there, or the events of a subscription (RFC 8650, section
//! 3.4; server-sent events) for as long as it goes on.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use manage::push::{Message, Shared};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{Attached, Way};
use crate::collector::session::stopped;

/// How often a stream without news shows that it goes on.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A body.
pub(super) enum Answer {
    /// All of it; none once it is sent.
    Whole(Option<Bytes>),
    /// Piece by piece.
    Events(mpsc::Receiver<Bytes>),
}

impl Answer {
    pub(super) fn whole(octets: Vec<u8>) -> Self {
        Self::Whole((!octets.is_empty()).then(|| octets.into()))
    }

    /// The events of a subscription. What is not read waits there, and there it is bounded.
    pub(super) fn events(reader: Attached, stop: watch::Receiver<bool>) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(send(reader, sender, stop));
        Self::Events(receiver)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(octets) => Poll::Ready(octets.take().map(|octets| Ok(Frame::data(octets)))),
            Self::Events(events) => {
                events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(octets) => {
                let octets = octets.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(octets).unwrap_or(u64::MAX))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// Sends what there is and what comes until the subscription is over, its reader gone, or the agent
/// stops.
async fn send(mut reader: Attached, sender: mpsc::Sender<Bytes>, mut stop: watch::Receiver<bool>) {
    let managed = reader.managed();
    let _read = managed.counts.stream();
    loop {
        let pieces = tokio::select! {
            message = reader.next() => match message {
                Some(message) => {
                    managed.counts.sent(Way::Restconf);
                    event(&message)
                }
                None => return,
            },
            () = sender.closed() => return,
            () = stopped(&mut stop) => return,
            // A comment.
            () = sleep(KEEP_ALIVE) => vec![Bytes::from_static(b":\n\n")],
        };
        for piece in pieces {
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    }
}

/// Text that many streams hold at the same time.
struct Held(Arc<Shared>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// An event, in pieces. What is the same for everybody is not copied.
fn event(message: &Message) -> Vec<Bytes> {
    let (before, shared, after) = message.pieces();
    let is_line = |text: &str| !text.contains(['\n', '\r']);
    if is_line(&before) && is_line(&shared) && is_line(&after) {
        let before = Bytes::from(format!("data: {before}"));
        let after = Bytes::from(format!("{after}\n\n"));
        return vec![before, Bytes::from_owner(Held(shared)), after];
    }
    let document = [&*before, &*shared, &*after].concat();
    let mut out = String::with_capacity(document.len() + 16);
    // A line that ends within a document does not end the event.
    for line in document.split(['\n', '\r']) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    vec![out.into()]
}
