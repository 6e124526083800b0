//! Tokio-shaped channels, compiled for each library that has them.

use super::rt::sync::{mpsc, oneshot};
use crate::kind::{Channel, Single};

/// `mpsc::channel`.
pub(crate) struct Bounded;

impl Channel for Bounded {
    type Tx = mpsc::Sender<u64>;
    type Rx = mpsc::Receiver<u64>;

    fn create(capacity: Option<usize>) -> (Self::Tx, Self::Rx) {
        mpsc::channel(capacity.expect("a bounded channel"))
    }

    fn try_send(tx: &Self::Tx, value: u64) -> bool {
        tx.try_send(value).is_ok()
    }

    fn try_recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.try_recv().ok()
    }

    async fn send(tx: &Self::Tx, value: u64) -> bool {
        tx.send(value).await.is_ok()
    }

    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.recv().await
    }

    fn receivers(rx: Self::Rx, count: usize) -> Vec<Self::Rx> {
        assert_eq!(count, 1, "for one receiver only");
        vec![rx]
    }
}

/// `mpsc::unbounded_channel`.
pub(crate) struct Unbounded;

impl Channel for Unbounded {
    type Tx = mpsc::UnboundedSender<u64>;
    type Rx = mpsc::UnboundedReceiver<u64>;

    fn create(capacity: Option<usize>) -> (Self::Tx, Self::Rx) {
        assert!(capacity.is_none(), "an unbounded channel");
        mpsc::unbounded_channel()
    }

    fn try_send(tx: &Self::Tx, value: u64) -> bool {
        tx.send(value).is_ok()
    }

    fn try_recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.try_recv().ok()
    }

    async fn send(tx: &Self::Tx, value: u64) -> bool {
        tx.send(value).is_ok()
    }

    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.recv().await
    }

    fn receivers(rx: Self::Rx, count: usize) -> Vec<Self::Rx> {
        assert_eq!(count, 1, "for one receiver only");
        vec![rx]
    }
}

/// `oneshot::channel`.
pub(crate) struct Oneshot;

impl Single for Oneshot {
    type Tx = oneshot::Sender<u64>;
    type Rx = oneshot::Receiver<u64>;

    fn create() -> (Self::Tx, Self::Rx) {
        oneshot::channel()
    }

    fn send(tx: Self::Tx, value: u64) -> bool {
        tx.send(value).is_ok()
    }

    async fn recv(rx: Self::Rx) -> Option<u64> {
        rx.await.ok()
    }
}
