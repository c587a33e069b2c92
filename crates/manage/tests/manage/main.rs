//! The data tree and what is served of it.

mod access;
mod netconf;
mod push;
mod restconf;
mod scene;
mod select;
mod simulated;
mod subscriber;
mod terms;
mod trees;
mod xpath;
