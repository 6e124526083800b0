//! A receiver whose budget is renewed, beside a branch that comes first.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use volt::runtime::Builder;
use volt::sync::{mpsc, oneshot};

/// False if `stopped` is first: as `futures::select_biased!`, `select` and other crates' combinators do.
async fn next_by_hand(stopped: &mut oneshot::Receiver<()>, rx: &mut mpsc::Receiver<i32>) -> bool {
    let next = poll_fn(|cx| {
        if Pin::new(&mut *stopped).poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        rx.poll_recv(cx)
    });
    next.await.is_some()
}

/// The same, with the macro.
async fn next_of_a_select(
    stopped: &mut oneshot::Receiver<()>,
    rx: &mut mpsc::Receiver<i32>,
) -> bool {
    volt::select! {
        biased;
        _ = stopped => false,
        _ = rx.recv() => true,
    }
}

/// Sends `stop` after so many messages, and counts those that come in spite of it.
async fn after_the_stop(messages: usize, by_select: bool) -> usize {
    let (tx, mut rx) = mpsc::channel(1000);
    (0..1000).for_each(|i| tx.try_send(i).unwrap());
    let (stop, mut stopped) = oneshot::channel();
    let mut stop = Some(stop);
    let mut received = 0;
    loop {
        let more = if by_select {
            next_of_a_select(&mut stopped, &mut rx).await
        } else {
            next_by_hand(&mut stopped, &mut rx).await
        };
        if !more {
            return received - messages;
        }
        received += 1;
        if received == messages {
            stop.take().unwrap().send(()).unwrap();
        }
    }
}

fn late(by_select: bool) -> Vec<(usize, usize)> {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    rt.spawn(async move {
        let mut late = Vec::new();
        for messages in (100..300).chain([128; 20]) {
            // Quick polls, so that budgets are renewed.
            for _ in 0..200 {
                volt::task::yield_now().await;
            }
            let after = volt::spawn(after_the_stop(messages, by_select)).await.unwrap();
            if after > 0 {
                late.push((messages, after));
            }
        }
        done.send(late).unwrap();
    });
    wait.recv().unwrap()
}

#[test]
fn a_stop_is_before_all_messages_that_come_after_it() {
    let late = late(false);
    assert!(late.is_empty(), "(stop after, messages in spite of it): {late:?}");
}

#[test]
fn a_stop_in_a_select_is_before_all_messages_that_come_after_it() {
    let late = late(true);
    assert!(late.is_empty(), "(stop after, messages in spite of it): {late:?}");
}
