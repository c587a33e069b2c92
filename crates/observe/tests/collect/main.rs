//! The collecting side: each rule of section 7 by itself, and whole conversations.

mod conversation;
mod play;
mod rules;
mod words;
