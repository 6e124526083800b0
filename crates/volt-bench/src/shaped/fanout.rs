//! Tokio-shaped broadcast and watch, compiled for each library that has them.

use super::rt::sync::{broadcast, watch};
use crate::kind::{Broadcast, Watch};

/// `broadcast::channel`.
pub(crate) struct ToAll;

impl Broadcast for ToAll {
    type Tx = broadcast::Sender<u64>;
    type Rx = broadcast::Receiver<u64>;

    fn create(capacity: usize, receivers: usize) -> (Self::Tx, Vec<Self::Rx>) {
        let (tx, first) = broadcast::channel(capacity);
        let mut all = vec![first];
        all.extend((1..receivers).map(|_| tx.subscribe()));
        (tx, all)
    }

    async fn send(tx: &Self::Tx, value: u64) {
        tx.send(value).expect("there are receivers");
    }

    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        match rx.recv().await {
            Ok(value) => Some(value),
            Err(broadcast::error::RecvError::Closed) => None,
            Err(broadcast::error::RecvError::Lagged(n)) => panic!("{n} values lost"),
        }
    }

    fn try_recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.try_recv().ok()
    }
}

/// `watch::channel`.
pub(crate) struct Latest;

impl Watch for Latest {
    type Tx = watch::Sender<u64>;
    type Rx = watch::Receiver<u64>;

    fn create() -> (Self::Tx, Self::Rx) {
        watch::channel(0)
    }

    fn send(tx: &Self::Tx, value: u64) {
        tx.send(value).expect("there are receivers");
    }

    fn get(rx: &mut Self::Rx) -> u64 {
        *rx.borrow_and_update()
    }

    async fn changed(rx: &mut Self::Rx) -> bool {
        rx.changed().await.is_ok()
    }
}
