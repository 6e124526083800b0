//! Channels: kanal, flume, crossbeam, async-channel, tachyonix, asyncband, oneshot.
#![forbid(unsafe_code)]

use crate::kind::{Broadcast, Channel, Single, Watch};

/// A channel whose receivers can be cloned.
macro_rules! mpmc {
    (
        $(#[$meta:meta])* $name:ident, $tx:ty, $rx:ty, $bounded:path, $unbounded:path,
        try_send($t:ident, $v:ident) $try_send:expr, try_recv($r:ident) $try_recv:expr,
        send $send:expr, recv $recv:expr
    ) => {
        $(#[$meta])*
        pub(crate) struct $name;

        impl Channel for $name {
            type Tx = $tx;
            type Rx = $rx;

            fn create(capacity: Option<usize>) -> ($tx, $rx) {
                match capacity {
                    Some(capacity) => $bounded(capacity),
                    None => $unbounded(),
                }
            }

            #[inline]
            fn try_send($t: &$tx, $v: u64) -> bool {
                $try_send
            }

            #[inline]
            fn try_recv($r: &mut $rx) -> Option<u64> {
                $try_recv
            }

            #[inline]
            async fn send($t: &$tx, $v: u64) -> bool {
                $send
            }

            #[inline]
            async fn recv($r: &mut $rx) -> Option<u64> {
                $recv
            }

            fn receivers(rx: $rx, count: usize) -> Vec<$rx> {
                vec![rx; count]
            }
        }
    };
}

mpmc!(
    Kanal, kanal::AsyncSender<u64>, kanal::AsyncReceiver<u64>, kanal::bounded_async, kanal::unbounded_async,
    try_send(tx, value) matches!(tx.try_send(value), Ok(true)),
    try_recv(rx) rx.try_recv().ok().flatten(),
    send tx.send(value).await.is_ok(),
    recv rx.recv().await.ok()
);

mpmc!(
    Flume, flume::Sender<u64>, flume::Receiver<u64>, flume::bounded, flume::unbounded,
    try_send(tx, value) tx.try_send(value).is_ok(),
    try_recv(rx) rx.try_recv().ok(),
    send tx.send_async(value).await.is_ok(),
    recv rx.recv_async().await.ok()
);

mpmc!(
    AsyncChannel, async_channel::Sender<u64>, async_channel::Receiver<u64>, async_channel::bounded, async_channel::unbounded,
    try_send(tx, value) tx.try_send(value).is_ok(),
    try_recv(rx) rx.try_recv().ok(),
    send tx.send(value).await.is_ok(),
    recv rx.recv().await.ok()
);

mpmc!(
    /// For threads: waiting blocks the thread, so it takes part where each side has one.
    Crossbeam, crossbeam_channel::Sender<u64>, crossbeam_channel::Receiver<u64>,
    crossbeam_channel::bounded, crossbeam_channel::unbounded,
    try_send(tx, value) tx.try_send(value).is_ok(),
    try_recv(rx) rx.try_recv().ok(),
    send tx.send(value).is_ok(),
    recv rx.recv().ok()
);

mpmc!(
    Asyncband, asyncband::mpmc::BoundedSender<u64>, asyncband::mpmc::BoundedReceiver<u64>,
    asyncband::mpmc::bounded, only_bounded,
    try_send(tx, value) tx.try_send(value).is_ok(),
    try_recv(rx) rx.try_recv().ok(),
    send tx.send(value).await.is_ok(),
    recv rx.recv().await.ok()
);

fn only_bounded<T>() -> T {
    panic!("a bounded channel")
}

/// A channel for one receiver.
macro_rules! mpsc {
    ($name:ident, $tx:ty, $rx:ty, $capacity:ident => $create:expr, send($t:ident, $v:ident) $try_send:expr, $send:expr) => {
        pub(crate) struct $name;

        impl Channel for $name {
            type Tx = $tx;
            type Rx = $rx;

            fn create($capacity: Option<usize>) -> ($tx, $rx) {
                $create
            }

            #[inline]
            fn try_send($t: &$tx, $v: u64) -> bool {
                $try_send
            }

            #[inline]
            fn try_recv(rx: &mut $rx) -> Option<u64> {
                rx.try_recv().ok()
            }

            #[inline]
            async fn send($t: &$tx, $v: u64) -> bool {
                $send
            }

            #[inline]
            async fn recv(rx: &mut $rx) -> Option<u64> {
                rx.recv().await.ok()
            }

            fn receivers(rx: $rx, count: usize) -> Vec<$rx> {
                assert_eq!(count, 1, "for one receiver only");
                vec![rx]
            }
        }
    };
}

mpsc!(
    Tachyonix, tachyonix::Sender<u64>, tachyonix::Receiver<u64>,
    capacity => tachyonix::channel(capacity.expect("a bounded channel")),
    send(tx, value) tx.try_send(value).is_ok(), tx.send(value).await.is_ok()
);

mpsc!(
    AsyncbandMpsc, asyncband::mpsc::BoundedSender<u64>, asyncband::mpsc::BoundedReceiver<u64>,
    capacity => asyncband::mpsc::bounded(capacity.expect("a bounded channel")),
    send(tx, value) tx.try_send(value).is_ok(), tx.send(value).await.is_ok()
);

mpsc!(
    AsyncbandUnbounded, asyncband::mpsc::UnboundedSender<u64>, asyncband::mpsc::UnboundedReceiver<u64>,
    capacity => {
        assert!(capacity.is_none(), "an unbounded channel");
        asyncband::mpsc::unbounded()
    },
    send(tx, value) tx.send(value).is_ok(), tx.send(value).is_ok()
);

/// asyncband's oneshot.
pub(crate) struct AsyncbandOneshot;

impl Single for AsyncbandOneshot {
    type Tx = asyncband::oneshot::Sender<u64>;
    type Rx = asyncband::oneshot::Receiver<u64>;

    fn create() -> (Self::Tx, Self::Rx) {
        asyncband::oneshot::channel()
    }

    fn send(tx: Self::Tx, value: u64) -> bool {
        tx.send(value).is_ok()
    }

    async fn recv(rx: Self::Rx) -> Option<u64> {
        rx.await.ok()
    }
}

/// The crate `oneshot`.
pub(crate) struct OneshotCrate;

impl Single for OneshotCrate {
    type Tx = oneshot::Sender<u64>;
    type Rx = oneshot::AsyncReceiver<u64>;

    fn create() -> (Self::Tx, Self::Rx) {
        oneshot::async_channel()
    }

    fn send(tx: Self::Tx, value: u64) -> bool {
        tx.send(value).is_ok()
    }

    async fn recv(rx: Self::Rx) -> Option<u64> {
        rx.await.ok()
    }
}

/// asyncband's broadcast; a sender waits for the slowest receiver.
pub(crate) struct AsyncbandBroadcast;

impl Broadcast for AsyncbandBroadcast {
    type Tx = asyncband::broadcast::mpmc::BoundedSender<u64>;
    type Rx = asyncband::broadcast::mpmc::BoundedReceiver<u64>;

    fn create(capacity: usize, receivers: usize) -> (Self::Tx, Vec<Self::Rx>) {
        let (tx, first) = asyncband::broadcast::mpmc::bounded(capacity);
        let mut all = vec![first];
        all.extend((1..receivers).map(|_| tx.subscribe()));
        (tx, all)
    }

    async fn send(tx: &Self::Tx, value: u64) {
        tx.send(value).await;
    }

    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.recv().await.ok()
    }

    fn try_recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.try_recv().ok()
    }
}

/// asyncband's watch.
pub(crate) struct AsyncbandWatch;

impl Watch for AsyncbandWatch {
    type Tx = asyncband::watch::Sender<u64>;
    type Rx = asyncband::watch::Receiver<u64>;

    fn create() -> (Self::Tx, Self::Rx) {
        asyncband::watch::channel(0)
    }

    fn send(tx: &Self::Tx, value: u64) {
        tx.send(value).expect("there are receivers");
    }

    fn get(rx: &mut Self::Rx) -> u64 {
        rx.get()
    }

    async fn changed(rx: &mut Self::Rx) -> bool {
        rx.changed().await.is_ok()
    }
}
