//! The data tree and what is served of it.

mod access;
mod scene;
mod select;
mod trees;
mod xpath;
