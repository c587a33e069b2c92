//! Every file of the corpus, once.

use std::fs;
use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let mut files = 0;
    for entry in fs::read_dir(&directory).expect("the corpus is part of the repository") {
        let path = entry.expect("the corpus can be listed").path();
        // Says which file it was where the target panics.
        println!("{}", path.display());
        target(&fs::read(&path).expect("a file of the corpus can be read"));
        files += 1;
    }
    assert!(files > 0, "{} is empty", directory.display());
}

#[test]
fn every_frame_of_the_corpus_holds() {
    replay("frame", rocescope_fuzz::frame);
}

#[test]
fn every_capture_of_the_corpus_holds() {
    replay("capture", rocescope_fuzz::capture);
}

#[test]
fn every_stream_of_ipfix_messages_of_the_corpus_holds() {
    replay("ipfix", rocescope_fuzz::ipfix);
}

// QUE-sec.1
#[test]
fn every_session_of_netconf_of_the_corpus_holds() {
    replay("netconf", rocescope_fuzz::netconf);
}

// QUE-sec.1
#[test]
fn every_request_of_restconf_of_the_corpus_holds() {
    replay("restconf", rocescope_fuzz::restconf);
}

#[test]
fn every_selection_of_the_corpus_holds() {
    replay("selection", rocescope_fuzz::selection);
}

// QUE-sec.1
#[test]
fn every_order_of_subscriptions_of_the_corpus_holds() {
    replay("subscriptions", rocescope_fuzz::subscriptions);
}
