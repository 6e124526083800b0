//! The models of Volt's protocols, each as it is built, and with what breaks it.
//!
//! `order_*` are litmus programs, the others explorers. A test whose name starts with `seed_` or
//! `weak_` shows a defect: of the documents that Volt started from, or of a weakened protocol.
#![allow(clippy::too_many_lines, reason = "a thread is one list of steps, best read in its order")]

mod buffer;
mod channel;
mod channel_send;
mod idle;
mod list;
mod order_channel;
mod order_parking;
mod order_words;
mod parker;
mod permits;
mod queue;
mod ring;
mod sync_word;
mod wait_set;
mod watcher;
