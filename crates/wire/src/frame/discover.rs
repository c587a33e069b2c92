//! At which layer RoCEv2 stands in a frame, for a user who has not said it.
//!
//! This is for telling people what to configure. Nothing is metered by it.

use super::cursor::Span;
use super::tunnel::{self, Inner};
use super::{Frame, Layer, LinkType, MirrorKind, Namespace, Start, inside};

/// Encapsulations inside each other that are looked through.
const NESTED_MAX: usize = 3;

/// Where RoCEv2 was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    /// The encapsulations around it, from the outside in; all nothing where the frame itself is
    /// RoCEv2.
    pub around: [Option<MirrorKind>; NESTED_MAX],
}

impl Carried {
    /// The layer to observe, or nothing where it stands deeper than one encapsulation, which no
    /// layer shows.
    #[must_use]
    pub const fn layer(&self) -> Option<Layer> {
        match self.around {
            [None, ..] => Some(Layer::Outer),
            [Some(kind), None, _] => Some(kind.layer()),
            _ => None,
        }
    }
}

/// Where in the frame RoCEv2 stands, if it does: the outermost place. A frame of which it is
/// known to be RoCEv2 counts also where its BTH cannot be had.
///
/// Slower than [`super::decode`]: it tries every layer.
#[must_use]
pub fn carries(frame: &[u8], original_len: u32, link: LinkType) -> Option<Carried> {
    let whole = Inner {
        span: Span::new(frame, original_len),
        start: Start::Link(link),
        namespace: Namespace::default(),
    };
    let mut around = [None; NESTED_MAX];
    search(whole, &mut around, 0).then_some(Carried { around })
}

fn search(inner: Inner<'_>, around: &mut [Option<MirrorKind>; NESTED_MAX], depth: usize) -> bool {
    match inside(inner.span, inner.start, inner.namespace) {
        Frame::Roce(_) => return true,
        Frame::Fault(fault) if fault.is_roce() => return true,
        Frame::Fault(_) | Frame::NotRoce(_) | Frame::Pfc(_) => {}
    }
    if depth == NESTED_MAX {
        return false;
    }
    // One frame is in at most one encapsulation, so at most one of these opens.
    for layer in [Layer::Erspan, Layer::Gre, Layer::Vxlan, Layer::Geneve] {
        if let Ok((mirror, inner)) = tunnel::open_at(inner.span, inner.start, layer) {
            around[depth] = Some(mirror.kind);
            if search(inner, around, depth + 1) {
                return true;
            }
            around[depth] = None;
        }
    }
    false
}
