//! Queue telemetry: events to intervals, against a slow integral, and rows of others to groups.

mod aggregate;
mod intervals;
mod limits;
mod rows;
mod sampled;
mod slow;
mod support;
mod totals;
