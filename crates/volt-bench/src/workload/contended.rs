//! Locks and channels between tasks on two workers.
//!
//! Libraries without a runtime of their own run on Tokio's; the part after `on` in a contender's
//! name says where it ran. Thread locks and channels run on threads or block the worker: floors.
#![forbid(unsafe_code)]

mod channels;
mod locks;

use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = locks::rows();
    rows.extend(channels::rows());
    rows
}
