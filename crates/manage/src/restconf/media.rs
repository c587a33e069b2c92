//! Media types (RFC 8040, section 5.2).

use crate::read::Encoding;

/// The media type of data.
pub(super) const fn name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "application/yang-data+json",
        Encoding::Xml => "application/yang-data+xml",
    }
}

/// The encoding that an `Accept` prefers; none where it takes neither. Without one it is that of what
/// was sent (RFC 8040, section 5.2), JSON where nothing was.
pub fn accepted(accept: Option<&str>, sent: Option<&str>) -> Option<Encoding> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Some(sent.and_then(of_body).unwrap_or(Encoding::Json));
    };
    let quality = |encoding| {
        let mut best: Option<(u8, u16)> = None;
        for range in accept.split(',') {
            let Some((specificity, quality)) = weighed(range, encoding) else { continue };
            if best.is_none_or(|(found, _)| specificity > found) {
                best = Some((specificity, quality));
            }
        }
        best.map_or(0, |(_, quality)| quality)
    };
    let (json, xml) = (quality(Encoding::Json), quality(Encoding::Xml));
    match (json, xml) {
        (0, 0) => None,
        _ if json >= xml => Some(Encoding::Json),
        _ => Some(Encoding::Xml),
    }
}

/// How closely a media range is about an encoding, and its quality in thousandths.
fn weighed(range: &str, encoding: Encoding) -> Option<(u8, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let specificity = match (&*media, encoding) {
        ("application/yang-data+json", Encoding::Json) => 3,
        ("application/yang-data+xml", Encoding::Xml) => 3,
        ("application/json", Encoding::Json) => 2,
        ("application/xml" | "text/xml", Encoding::Xml) => 2,
        ("application/*", _) => 1,
        ("*/*", _) => 0,
        _ => return None,
    };
    let quality = parts
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .map_or(Some(1000), |(_, value)| thousandths(value.trim()));
    Some((specificity, quality?))
}

/// A quality value (RFC 9110, section 12.4.2).
fn thousandths(value: &str) -> Option<u16> {
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if part.len() > 3 || !part.bytes().all(|octet| octet.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{part:0<3}").parse().ok()?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1000),
        _ => None,
    }
}

/// The encoding of a body by its `Content-Type`.
pub(super) fn of_body(content_type: &str) -> Option<Encoding> {
    let media = content_type.split(';').next()?.trim().to_ascii_lowercase();
    match &*media {
        "application/yang-data+json" | "application/json" => Some(Encoding::Json),
        "application/yang-data+xml" | "application/xml" | "text/xml" => Some(Encoding::Xml),
        _ => None,
    }
}
