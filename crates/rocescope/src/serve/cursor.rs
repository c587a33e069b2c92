//! Cursors: where a listing goes on. A place in it stays where it is while others are written, and
//! what is new comes before it, so that no page repeats or misses what was there at the first.

use ring::digest::{SHA256, digest};

/// Octets that show that a cursor is one of ours, and of the same question.
const CHECK: usize = 6;

/// A cursor for a place in the listing that a question has for its answer.
pub(super) fn cursor(question: &str, place: u64) -> String {
    format!("{place:016x}{}", check(question, place))
}

/// The place, if it is a cursor of that question.
pub(super) fn place(question: &str, cursor: &str) -> Option<u64> {
    let (digits, shown) = cursor.split_at_checked(16)?;
    let place = u64::from_str_radix(digits, 16).ok()?;
    (shown == check(question, place)).then_some(place)
}

/// A cursor for a place that is two numbers.
pub(super) fn cursor_of_pair(question: &str, [first, second]: [u64; 2]) -> String {
    format!("{first:016x}{}", cursor(&format!("{question} {first}"), second))
}

/// The place, if it is a cursor of that question.
pub(super) fn pair(question: &str, cursor: &str) -> Option<[u64; 2]> {
    let (digits, rest) = cursor.split_at_checked(16)?;
    let first = u64::from_str_radix(digits, 16).ok()?;
    Some([first, place(&format!("{question} {first}"), rest)?])
}

/// Not a secret: it tells mistakes, and what it protects is readable anyhow.
fn check(question: &str, place: u64) -> String {
    let digest = digest(&SHA256, format!("1 {place} {question}").as_bytes());
    digest.as_ref().iter().take(CHECK).map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_its_place_and_is_taken_by_its_own_question_only() {
        for at in [0, 1, u64::MAX] {
            let ours = cursor("a", at);
            assert_eq!(place("a", &ours), Some(at));
            assert_eq!(place("b", &ours), None);
        }
        let two = cursor_of_pair("a", [3, u64::MAX]);
        assert_eq!(pair("a", &two), Some([3, u64::MAX]));
        assert_eq!((pair("b", &two), pair("a", &two[1..])), (None, None));
        assert_eq!(pair("a", &two.replacen('3', "4", 1)), None);
        let ours = cursor("a", 7);
        for bad in ["", "7", "é", &ours[1..], &format!("{ours}0"), &ours.to_uppercase()] {
            assert!(place("a", bad).is_none() || bad == ours, "{bad}");
        }
    }
}
