//! What a collector keeps: the database and the archive, through kills, full disks and retention.

mod archive;
mod database;
mod find;
mod full;
mod killed;
mod marks;
mod pfc;
mod queue;
mod retention;
mod support;
mod torn;
