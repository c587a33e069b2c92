//! The sequence engine against a slow model and against recorded cases.

mod against_model;
mod cases;
mod model;
