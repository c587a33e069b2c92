//! Who may read: real handshakes, tokens, certificates, and names that are asked for.

use std::time::{Duration, SystemTime};

use rcgen::ExtendedKeyUsagePurpose;
use rocescope::config::ConfigError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Answer, exchange, request};
use crate::export::{Identity, text};
use crate::site::{Site, described};

/// SHA-256 of `secret`, as `printf secret | sha256sum` prints it.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

const TLS: &str = "certificate = \"collector.pem\"\nkey = \"collector.key\"\n";

fn tokens() -> String {
    format!(
        "{TLS}[[http.reader]]\ntoken_sha256 = \"sha256:{SECRET}\"\nrole = \"read\"\n\
         [[http.reader]]\ntoken_sha256 = \"{}\"\nrole = \"metrics\"\n",
        sha256("counter")
    )
}

fn sha256(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Asks over TLS, with a certificate or without, with more header lines.
async fn ask(
    site: &Site,
    identity: Option<&Identity>,
    target: &str,
    lines: &[&str],
) -> std::io::Result<Answer> {
    let mut stream = site.tls(identity).await?;
    let answer = exchange(&mut stream, &request("GET", target, lines)).await?;
    described("GET", target, &answer);
    Ok(answer)
}

#[test]
fn the_digest_of_a_token_is_that_of_its_octets() {
    assert_eq!(sha256("secret"), SECRET);
}

// SEQ-10.1, SEQ-10.3
#[tokio::test]
async fn a_reader_has_a_token_that_is_listed_and_reads_what_its_role_may() {
    let site = Site::new("tokens", &tokens(), "").start().await;
    let status =
        async |target: &str, lines: &[&str]| ask(&site, None, target, lines).await.unwrap().status;
    for target in ["/api/v1/epochs", "/api/openapi.json", "/metrics", "/readyz", "/nothing"] {
        let denied = ask(&site, None, target, &[]).await.unwrap();
        assert_eq!(denied.status, 401, "{target}");
        assert_eq!(denied.header("www-authenticate"), Some("Bearer realm=\"rocescope\""));
    }
    assert_eq!(status("/api/v1/epochs", &["authorization: Bearer secret"]).await, 200);
    assert_eq!(status("/api/v1/epochs", &["authorization: bearer  secret"]).await, 200);
    assert_eq!(status("/metrics", &["authorization: Bearer secret"]).await, 200);
    assert_eq!(status("/metrics", &["authorization: Bearer counter"]).await, 200);
    assert_eq!(status("/healthz", &["authorization: Bearer counter"]).await, 200);
    let denied = ask(&site, None, "/api/v1/epochs", &["authorization: Bearer counter"]).await;
    let denied = denied.unwrap();
    assert_eq!(denied.status, 403);
    let detail = "role \"metrics\" may read /metrics, /healthz, /readyz, expected role \"read\"";
    assert_eq!(denied.json()["detail"], detail);
    for wrong in [
        "authorization: Bearer Secret",
        "authorization: Bearer secre",
        "authorization: Bearer",
        "authorization: Bearer ",
        "authorization: Basic c2VjcmV0",
        "authorization: secret",
        &format!("authorization: Bearer {SECRET}"),
    ] {
        assert_eq!(status("/api/v1/epochs", &[wrong]).await, 401, "{wrong}");
    }
    let twice = ["authorization: Bearer secret", "authorization: Bearer counter"];
    assert_eq!(status("/metrics", &twice).await, 401);
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_reader_has_a_good_certificate_of_a_name_or_a_fingerprint_that_is_listed() {
    let site = Site::new("certificates", "", "");
    let known = site.authority.client("known.example", 5);
    let pem = rustls::pki_types::pem::PemObject::from_pem_slice(known.pem.as_bytes()).unwrap();
    let pem: rustls::pki_types::CertificateDer<'_> = pem;
    let digest = ring::digest::digest(&ring::digest::SHA256, &pem);
    let fingerprint: String = digest.as_ref().iter().map(|o| format!("{o:02x}")).collect();
    site.write("revoked.pem", &site.authority.revoke(6));
    site.configure(
        &format!(
            "{TLS}authority = \"ca.pem\"\nrevocation = \"revoked.pem\"\n\
             [[http.reader]]\nname = \"reader.example\"\nrole = \"metrics\"\n\
             [[http.reader]]\nfingerprint = \"sha256:{fingerprint}\"\nrole = \"read\"\n\
             [[http.reader]]\ntoken_sha256 = \"{SECRET}\"\nrole = \"read\"\n"
        ),
        "",
    );
    let site = site.start().await;
    let status = async |identity: &Identity, target: &str| {
        ask(&site, Some(identity), target, &[]).await.map(|answer| answer.status).ok()
    };
    assert_eq!(status(&known, "/api/v1/epochs").await, Some(200));
    let reader = site.authority.client("reader.example", 4);
    assert_eq!(status(&reader, "/metrics").await, Some(200));
    assert_eq!(status(&reader, "/api/v1/epochs").await, Some(403));
    // Of the right authority, but not listed.
    assert_eq!(status(&site.authority.client("other.example", 7), "/metrics").await, Some(401));
    // Not good: the handshake fails.
    let revoked = site.authority.client("reader.example", 6);
    assert_eq!(status(&revoked, "/metrics").await, None);
    let stranger = crate::export::Authority::new().client("reader.example", 4);
    assert_eq!(status(&stranger, "/metrics").await, None);
    let minute = Duration::from_secs(60);
    let usage = ExtendedKeyUsagePurpose::ClientAuth;
    let expired = site.authority.issue("reader.example", 8, usage, SystemTime::now() - minute);
    assert_eq!(status(&expired, "/metrics").await, None);
    // Whoever has none may have a token.
    assert_eq!(ask(&site, None, "/metrics", &[]).await.unwrap().status, 401);
    let token = ["authorization: Bearer secret"];
    assert_eq!(ask(&site, None, "/metrics", &token).await.unwrap().status, 200);
    // A wrong token is not made good by a certificate.
    let wrong = ["authorization: Bearer x"];
    assert_eq!(ask(&site, Some(&known), "/metrics", &wrong).await.unwrap().status, 401);
    site.stop().await;
}

const OPENSSL_CLIENT: &str = "
import socket, ssl, sys
port, version, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(directory + '/ca.pem')
context.minimum_version = ssl.TLSVersion.TLSv1_2
context.maximum_version = getattr(ssl.TLSVersion, version)
try:
    raw = socket.create_connection(('127.0.0.1', port), timeout=20)
    stream = context.wrap_socket(raw, server_hostname='localhost')
    stream.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer secret\\r\\n\\r\\n')
    print(stream.version(), stream.recv(100).decode().split('\\r')[0])
except ssl.SSLError as error:
    print('refused', error.reason)
";

// SEQ-10.1
#[tokio::test]
async fn tls_1_2_is_refused_and_tls_1_3_of_another_library_taken() {
    let site = Site::new("versions", &tokens(), "").start().await;
    let port = site.started().http_address().unwrap().port().to_string();
    for (version, expected) in [
        ("TLSv1_2", "refused TLSV1_ALERT_PROTOCOL_VERSION"),
        ("TLSv1_3", "TLSv1.3 HTTP/1.1 200 OK"),
    ] {
        let mut python = tokio::process::Command::new("python3");
        python.args(["-c", OPENSSL_CLIENT, &port, version]).arg(&site.directory);
        let output = python.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
    }
    site.stop().await;
}

#[tokio::test]
async fn http_without_tls_where_tls_is_expected_is_told_so() {
    let site = Site::new("plain", &tokens(), "").start().await;
    let mut stream = site.tcp().await;
    let answer = exchange(&mut stream, &request("GET", "/healthz", &[])).await.unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.text(), "HTTP without TLS, expected TLS 1.3: https://\n");
    site.stop().await;
}

// SEQ-10.3
#[tokio::test]
async fn a_page_whose_name_has_come_to_mean_this_machine_reads_nothing() {
    let site = Site::new("names", "hosts = [\"collector.example\"]", "").start().await;
    let status = async |head: &str| {
        let mut stream = site.tcp().await;
        let octets = format!("{head}\r\n\r\n");
        let answer = exchange(&mut stream, octets.as_bytes()).await.unwrap();
        described("GET", "/healthz", &answer);
        answer.status
    };
    for good in ["localhost", "127.0.0.1:8080", "[::1]:1", "collector.example:8080"] {
        assert_eq!(status(&format!("GET /healthz HTTP/1.1\r\nhost: {good}")).await, 200, "{good}");
    }
    for bad in ["evil.example", "evil.example:8080", "192.0.2.1", "localhost.evil.example", ""] {
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {bad}\r\norigin: http://evil.example");
        assert_eq!(status(&head).await, 421, "{bad}");
    }
    let absolute = "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost";
    assert_eq!(status(absolute).await, 421);
    assert_eq!(status("GET /healthz HTTP/1.1").await, 400);
    assert_eq!(status("GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost").await, 400);
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_reload_takes_readers_and_certificates_anew_also_for_open_connections() {
    let site = Site::new("reload", &tokens(), "").start().await;
    let mut open = site.tls(None).await.unwrap();
    let octets = request("GET", "/healthz", &["authorization: Bearer secret"]);
    assert_eq!(exchange(&mut open, &octets).await.unwrap().status, 200);

    // A file that cannot be used leaves all as it was.
    let key = text(&site.directory.join("collector.key"));
    site.write("other.key", "no key");
    site.configure(&tokens().replace("collector.key", "other.key"), "");
    let problem = site.started().reload(&site.config()).unwrap_err();
    assert!(problem.contains(": http.key: "), "{problem}");
    assert_eq!(exchange(&mut open, &octets).await.unwrap().status, 200);

    let server = site.authority.server();
    site.write("other.pem", &server.pem);
    site.write("other.key", &server.key);
    assert_ne!(server.key, key);
    let http = tokens().replace("collector.", "other.").replace(SECRET, &sha256("fresh"));
    site.configure(&http, "");
    site.started().reload(&site.config()).unwrap();
    assert_eq!(exchange(&mut open, &octets).await.unwrap().status, 401);
    let fresh = ["authorization: Bearer fresh"];
    assert_eq!(ask(&site, None, "/healthz", &fresh).await.unwrap().status, 200);
    let mut stream = site.tls(None).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    stream.shutdown().await.unwrap();
    _ = stream.read_to_end(&mut Vec::new()).await;
    let expected = <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>
        ::from_pem_slice(server.pem.as_bytes())
        .unwrap();
    assert_eq!(shown, expected);
    site.stop().await;
}

// SEQ-10.1, SEQ-10.3
#[tokio::test]
async fn a_reload_never_opens_what_listens_to_other_machines() {
    let everywhere = format!("listen = \"0.0.0.0:8080\"\n{}", tokens());
    let site = Site::new("everywhere", &everywhere, "").start().await;
    let port = site.started().http_address().unwrap().port();
    let status = async |lines: &[&str]| {
        let (connector, name) = crate::export::connector(&site.authority.pem, None);
        let tcp = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut stream = connector.connect(name, tcp).await.unwrap();
        exchange(&mut stream, &request("GET", "/healthz", lines)).await.unwrap().status
    };
    let token = ["authorization: Bearer secret"];
    assert_eq!((status(&[]).await, status(&token).await), (401, 200));
    // All of these are good to begin with.
    for open in ["", TLS, "serve = false"] {
        site.configure(open, "");
        let problem = site.started().reload(&site.config()).unwrap_err();
        let expected = format!("http.listen: 0.0.0.0:{port} is reached from other machines until");
        assert!(problem.starts_with(&expected), "{problem}");
        assert_eq!((status(&[]).await, status(&token).await), (401, 200));
    }
    site.stop().await;
}

// SEQ-10.1, SEQ-10.3
#[tokio::test]
async fn a_reload_never_opens_what_was_closed_to_others_on_this_machine() {
    let site = Site::new("closed", &tokens(), "").start().await;
    let mut open = site.tls(None).await.unwrap();
    let octets = request("GET", "/healthz", &[]);
    assert_eq!(exchange(&mut open, &octets).await.unwrap().status, 401);
    for (dropped, expected) in [("", "certificate and key"), (TLS, "at least one [[http.reader]]")]
    {
        site.configure(dropped, "");
        let problem = site.started().reload(&site.config()).unwrap_err();
        assert!(problem.starts_with("http: ") && problem.contains(expected), "{problem}");
        assert_eq!(exchange(&mut open, &octets).await.unwrap().status, 401);
    }
    site.stop().await;
}

/// What is wrong with `[http]`, in a line each.
fn refused(site: &Site, http: &str) -> Vec<String> {
    site.configure(http, "");
    let read = rocescope::config::read_collector(&site.directory.join("collector.toml"));
    let name = format!("{}:", site.directory.join("collector.toml").display());
    let errors: Vec<ConfigError> = read.err().unwrap_or_default();
    errors
        .iter()
        .map(|error| {
            let line = error.to_string();
            let (_, problem) = line.strip_prefix(&name).unwrap().split_once(": ").unwrap();
            problem.to_owned()
        })
        .collect()
}

// SEQ-10.1, SEQ-10.3
#[test]
fn what_would_be_open_to_other_machines_is_refused_before_anything_listens() {
    let site = Site::new("refused", "", "");
    let token = format!("[[http.reader]]\ntoken_sha256 = \"{SECRET}\"\nrole = \"read\"\n");
    let named = "[[http.reader]]\nname = \"a.example\"\nrole = \"read\"\n";
    for listen in ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080", "[::ffff:192.0.2.1]:80"] {
        for rest in ["", TLS, "hosts = [\"a.example\"]\n"] {
            let expected = format!(
                "http.listen: {listen} is reached from other machines, expected a loopback \
                 address, or certificate, key and at least one [[http.reader]]"
            );
            let http = format!("listen = \"{listen}\"\n{rest}");
            assert_eq!(refused(&site, &http), [expected], "{rest}");
        }
        let with_token = format!("listen = \"{listen}\"\n{TLS}{token}");
        assert_eq!(refused(&site, &with_token), Vec::<String>::new());
    }
    for (http, expected) in [
        (
            token.clone(),
            "http.reader: readers without TLS, whose tokens anyone could read on the way; \
             expected certificate and key",
        ),
        (
            format!("{TLS}{named}"),
            "http.authority: missing, expected the authority that the certificates of readers by \
             name or fingerprint come from",
        ),
        (
            format!("{TLS}authority = \"ca.pem\"\n{token}"),
            "http.authority: nobody is known by a certificate, expected an [[http.reader]] with a \
             name or a fingerprint, or no authority",
        ),
        ("certificate = \"a\"\n".into(), "http.key: missing beside certificate, expected a file"),
        (
            "authority = \"a\"\n".into(),
            "http.certificate: missing beside the other files of [http], expected a file",
        ),
        (
            format!("{TLS}revocation = \"r\"\n"),
            "http.authority: missing beside revocation, expected a file",
        ),
        (
            format!("{TLS}[[http.reader]]\nrole = \"read\"\n"),
            "http.reader[0]: none of name, fingerprint and token_sha256, expected exactly one of \
             them",
        ),
        (
            format!("{TLS}[[http.reader]]\ntoken_sha256 = \"{SECRET}\"\n"),
            "http.reader[0].role: missing, expected \"read\" or \"metrics\"",
        ),
        (
            format!("{TLS}[[http.reader]]\ntoken_sha256 = \"secret\"\nrole = \"read\"\n"),
            "http.reader[0].token_sha256: \"secret\", expected the SHA-256 of a token, 64 \
             hexadecimal digits",
        ),
        (
            format!("{TLS}[[http.reader]]\ntoken_sha256 = \"{SECRET}\"\nrole = \"write\"\n"),
            "http.reader[0].role: \"write\", expected \"read\" or \"metrics\"",
        ),
        (
            "hosts = [\"a.example:80\"]\n".into(),
            "http.hosts[0]: \"a.example:80\", expected a DNS name or an address, without a port",
        ),
        ("cors = true\n".into(), "http.cors: unknown key, expected serve"),
    ] {
        let found = refused(&site, &http);
        assert_eq!(found.len(), 1, "{http}: {found:?}");
        assert!(
            found[0] == expected
                || expected.starts_with("http.cors") && found[0].starts_with(expected),
            "{http}: {found:?}"
        );
    }
    let twice = refused(&site, &format!("{TLS}{token}{token}"));
    assert!(twice[0].contains("the same reader as on line "), "{twice:?}");
}
