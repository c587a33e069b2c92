//! The program.

#[allow(dead_code)]
mod dump;

fn main() {}
