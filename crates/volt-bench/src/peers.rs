//! Adapters of the contenders that are not Tokio-shaped.

pub(crate) mod channels;
#[cfg(feature = "forte")]
pub(crate) mod forte;
pub(crate) mod locks;
pub(crate) mod smol;
mod waiters;
