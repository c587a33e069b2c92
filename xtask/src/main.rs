//! The tools that people type.

fn main() {}
