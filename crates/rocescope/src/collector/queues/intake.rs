//! What stands in an answer or a notification, as entries for the store.

use store::QueueEntry;

use crate::queue::aggregate::first;
use crate::queue::reading::read_at_most;
use crate::queue::tree::Node;

/// What was in a document.
#[derive(Debug, Default)]
pub struct Taken {
    /// What is said of queues, in its order.
    pub entries: Vec<QueueEntry>,
    /// What is wrong beside that, or with what does not say of which queue it is.
    pub findings: Vec<String>,
}

/// Reads a document.
///
/// # Errors
/// It is no JSON; in a line.
pub fn read(octets: &[u8]) -> Result<Node, String> {
    serde_json::from_slice(octets).map_err(|error| format!("no JSON: {error}"))
}

/// Takes the entries of a document, at most so many.
// QUE-con.1
pub fn entries(document: &Node, entries_max: usize) -> Taken {
    let reading = read_at_most(document, entries_max);
    let mut taken = Taken { entries: Vec::new(), findings: reading.findings };
    for row in reading.rows {
        taken.entries.push(match row {
            Ok(row) => QueueEntry::Row(row),
            Err(malformed) => {
                let why = first(&malformed.faults);
                match malformed.identity {
                    Some((place, epoch, interval)) => {
                        QueueEntry::Malformed { place, epoch, interval, why }
                    }
                    None => {
                        taken.findings.push(format!("{}: {why}", malformed.whose));
                        QueueEntry::Nameless
                    }
                }
            }
        });
    }
    taken
}
