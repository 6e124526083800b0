//! `volt::sync::mpmc`, which Tokio does not have.
#![forbid(unsafe_code)]

use volt_sync::mpmc;

use crate::kind::Channel;

pub(crate) struct Mpmc;

impl Channel for Mpmc {
    type Tx = mpmc::Sender<u64>;
    type Rx = mpmc::Receiver<u64>;

    fn create(capacity: Option<usize>) -> (Self::Tx, Self::Rx) {
        match capacity {
            Some(capacity) => mpmc::bounded(capacity),
            None => mpmc::unbounded(),
        }
    }

    #[inline]
    fn try_send(tx: &Self::Tx, value: u64) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.try_recv().ok()
    }

    #[inline]
    async fn send(tx: &Self::Tx, value: u64) -> bool {
        tx.send(value).await.is_ok()
    }

    #[inline]
    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.recv().await
    }

    fn receivers(rx: Self::Rx, count: usize) -> Vec<Self::Rx> {
        vec![rx; count]
    }
}
