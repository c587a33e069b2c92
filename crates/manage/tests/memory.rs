//! What is taken for a selection is given back. Alone in its program: memory is counted of all of it.
#![cfg(target_os = "linux")]

#[path = "manage/scene.rs"]
#[allow(dead_code)]
mod scene;

use manage::operational;
use manage::select::xpath;

use scene::{interface, row, schema};

// The bindings of libyang keep the set of what was found for ever.
#[test]
fn what_was_selected_is_given_back() {
    let pages = || -> u64 {
        let found = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
        found.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number")
    };
    let listed: Vec<_> = (0..40).map(|nth| interface(&format!("e{nth}"))).collect();
    let rows: Vec<_> = listed
        .iter()
        .flat_map(|listed| (0..8).map(|nth| row(&listed.name, &format!("q{nth}"), 1).into()))
        .collect();
    let tree = [operational::interfaces(schema(), &listed, &rows).expect("the module is there")];
    let ask = || xpath(schema(), &tree, "//*", None).expect("selected");
    for _ in 0..20 {
        ask();
    }
    let before = pages();
    for _ in 0..100 {
        ask();
    }
    // Kept, it would be more than 25 KiB each time: 600 pages of 4 KiB.
    let more = pages().saturating_sub(before);
    assert!(more < 250, "{more} pages more");
}
