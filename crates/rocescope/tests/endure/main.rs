//! The two programs as they are shipped, against everything that can happen to them: whole
//! conversations over real TLS, kills at random moments, exporters that are hostile or foreign,
//! readers that stall and disks that are full.

mod conversations;
mod foreign;
mod full_disk;
mod hostile;
mod hostile_pfc;
mod kill;
mod proxy;
mod site;
mod stalled;
mod truth;
mod wire_side;

#[allow(dead_code, reason = "some of it is only for the state machine's own tests")]
#[path = "../../../observe/tests/collect/words.rs"]
mod words;

#[allow(dead_code, reason = "only the slow model is asked here")]
#[path = "../../../observe/tests/sequence/model.rs"]
mod model;
