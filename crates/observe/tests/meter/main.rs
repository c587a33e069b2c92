//! The meter: every way in which an epoch begins and closes, and every bound.

mod bounds;
mod closing;
mod driver;
