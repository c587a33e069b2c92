//! Requests of RESTCONF, one after the other.

use manage::restconf::{Request, Response};

use crate::answers::{document, json, json_data, nothing_hidden};
use crate::served::{Served, USER};

/// Requests of one input.
const REQUESTS_MAX: usize = 8;

/// Requests with a zero octet between them: a line with the method and the target, lines with header
/// fields, an empty line, the body.
///
/// # Panics
/// Where something does not hold.
pub fn restconf(data: &[u8]) {
    let (served, other) = (Served::new(true), Served::new(false));
    for octets in data.split(|octet| *octet == 0).take(REQUESTS_MAX) {
        let Some(request) = request(octets) else { return };
        let response = served.ask(USER, &request);
        checked(octets, &request, &response);
        assert_eq!(response, other.ask(USER, &request), "nothing hidden is told");
        if request.method == "GET" {
            let head = served.ask(USER, &Request { method: "HEAD", ..request });
            // The body of a refusal names the method.
            let alike = (head.status, &head.headers) == (response.status, &response.headers);
            assert!(alike, "HEAD is answered as GET is: {head:?}");
            assert!(head.body == response.body || head.status == 405);
        }
    }
}

fn request(octets: &[u8]) -> Option<Request<'_>> {
    let end = octets.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match end {
        Some(end) => (octets.get(..end)?, octets.get(end + 2..)?),
        None => (octets, &b""[..]),
    };
    let mut lines = std::str::from_utf8(head).ok()?.split('\n');
    let (method, target) = lines.next()?.split_once(' ')?;
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut request = Request { method, path, query, body, ..Request::default() };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let field = match name {
            "A" => &mut request.accept,
            "C" => &mut request.content_type,
            "N" => &mut request.if_none_match,
            "S" => &mut request.if_modified_since,
            _ => continue,
        };
        *field = Some(value.trim());
    }
    Some(request)
}

fn checked(question: &[u8], request: &Request<'_>, response: &Response) {
    let reading = [200, 204, 304, 400, 404, 405, 406];
    let calling = [403, 409, 413, 415, 500, 501];
    assert!(
        reading.contains(&response.status)
            || calling.contains(&response.status) && request.method == "POST",
        "status {} for {request:?}",
        response.status
    );
    for (name, value) in &response.headers {
        assert!(value.bytes().all(|octet| (b' '..=b'~').contains(&octet)), "{name}: {value:?}");
    }
    let most = 64 * question.len() + Served::WHOLE_OCTETS + 400_000;
    assert!(response.body.len() <= most, "{} octets", response.body.len());
    if matches!(response.status, 204 | 304) {
        assert!(response.body.is_empty());
        return;
    }
    let text = std::str::from_utf8(&response.body).expect("UTF-8");
    nothing_hidden(question, text);
    match response.header("content-type").expect("a body has a type") {
        "application/yang-data+json" => {
            let value = json(text);
            if let Some(data) = value.get("ietf-restconf:data") {
                json_data(&data.to_string());
            }
            let errors = value.get("ietf-restconf:errors");
            assert_eq!(errors.is_some(), response.status >= 400, "{} {text}", response.status);
            // What goes wrong here is no fault of the server's: a reason is named.
            if response.status == 500 {
                assert!(text.contains("error-app-tag"), "{text}");
            }
        }
        "application/yang-data+xml" => {
            let parsed = document(text);
            let errors = parsed.root_element().tag_name().name() == "errors";
            assert_eq!(errors, response.status >= 400, "{} {text}", response.status);
        }
        "application/xrd+xml" => {
            document(text);
        }
        "application/yang" => assert_eq!(response.status, 200),
        other => panic!("{other}"),
    }
}
