//! The benchmark's results as a table for docs/performance.md and as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::Row;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Processor and kernel.
    pub machine: String,
    /// Rounds that the medians were taken of.
    pub rounds: u32,
    /// One a program and input.
    pub rows: Vec<Row>,
}

impl Results {
    /// Writes the results as JSON.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// How many times the floor's time on the same input a row took; nothing where the floor was
    /// not run on it.
    fn ratio(&self, row: &Row) -> Option<f64> {
        let same = |floor: &&Row| floor.program == "floor" && floor.input == row.input;
        let floor = self.rows.iter().find(same)?;
        Some(row.wall_ns_per_packet / floor.wall_ns_per_packet)
    }
}

/// The table, with what must be known to read it.
pub fn markdown(results: &Results) -> String {
    let mut out = format!(
        "{}; one core; medians of {} rounds in alternation (other programs: of at most 3, on a \
         smaller input, so compare them by packet).\n\n\
         | program | input | ns/packet | fastest to slowest | CPU ns/packet | of the floor | peak MiB |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
        results.machine, results.rounds,
    );
    for row in &results.rows {
        let ratio = results.ratio(row).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let [fastest, slowest] = row.spread_ns_per_packet;
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} | {fastest:.1} to {slowest:.1} | {:.1} | {ratio} | {:.0} |",
            row.program, row.input, row.wall_ns_per_packet, row.cpu_ns_per_packet, row.peak_mib,
        );
    }
    out
}

/// Replaces what stands between the `bench` markers of a document.
pub fn write(path: &Path, results: &Results) -> anyhow::Result<()> {
    replace(path, "bench", &markdown(results))
}

/// Replaces what stands between the markers with a name.
pub fn replace(path: &Path, marker: &str, table: &str) -> anyhow::Result<()> {
    let name = path.display();
    let document = fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    let document = replaced(&document, marker, table)
        .with_context(|| format!("{name}: has no `{marker}` markers, one after the other"))?;
    fs::write(path, document).with_context(|| format!("{name}: cannot be written"))
}

fn replaced(document: &str, marker: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {marker}: begin -->\n"), format!("<!-- {marker}: end -->"));
    let (before, rest) = document.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{table}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, input: &str, each: f64) -> Row {
        Row {
            program: program.into(),
            input: input.into(),
            packets: 1000,
            wall_s: each / 1e6,
            wall_ns_per_packet: each,
            cpu_ns_per_packet: each,
            spread_ns_per_packet: [each, each],
            peak_mib: 3.0,
        }
    }

    #[test]
    fn a_ratio_is_taken_on_the_same_input_or_not_at_all() {
        let rows = vec![row("floor", "a", 2.0), row("meter", "a", 5.0), row("meter", "b", 5.0)];
        let table = markdown(&Results { machine: "m".into(), rounds: 1, rows });
        assert!(table.contains("| meter | a | 5.0 | 5.0 to 5.0 | 5.0 | 2.50 | 3 |"), "{table}");
        assert!(table.contains("| meter | b | 5.0 | 5.0 to 5.0 | 5.0 | - | 3 |"), "{table}");
    }

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let document = "a\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nz\n";
        let once = replaced(document, "bench", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- bench: begin -->\n\nnew\n\n<!-- bench: end -->\nz\n");
        assert_eq!(replaced(&once, "bench", "new\n").unwrap(), once);
        assert_eq!(replaced("no markers", "bench", "new"), None);
        assert_eq!(replaced(document, "bench records", "new"), None);
    }
}
