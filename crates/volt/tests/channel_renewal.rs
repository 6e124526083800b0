//! A receiver whose budget is renewed, beside a branch that comes first.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use volt::runtime::Builder;
use volt::sync::{mpsc, oneshot};

/// Sends `stop` after so many messages, and counts those that come in spite of it.
async fn after_the_stop(messages: usize) -> usize {
    let (tx, mut rx) = mpsc::channel(1000);
    (0..1000).for_each(|i| tx.try_send(i).unwrap());
    let (stop, mut stopped) = oneshot::channel();
    let mut stop = Some(stop);
    let mut received = 0;
    loop {
        // As `futures::select_biased!`, `select` and other crates' combinators do.
        let next = poll_fn(|cx| {
            if Pin::new(&mut stopped).poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            rx.poll_recv(cx)
        });
        if next.await.is_none() {
            return received - messages;
        }
        received += 1;
        if received == messages {
            stop.take().unwrap().send(()).unwrap();
        }
    }
}

/// The same, with the macro.
async fn after_the_stop_of_a_select(messages: usize) -> usize {
    let (tx, mut rx) = mpsc::channel(1000);
    (0..1000).for_each(|i| tx.try_send(i).unwrap());
    let (stop, mut stopped) = oneshot::channel();
    let mut stop = Some(stop);
    let mut received = 0;
    loop {
        volt::select! {
            biased;
            _ = &mut stopped => return received - messages,
            _ = rx.recv() => {
                received += 1;
                if received == messages {
                    stop.take().unwrap().send(()).unwrap();
                }
            }
        }
    }
}

fn late<F: Future<Output = usize> + Send + 'static>(
    stop_after: impl Fn(usize) -> F + Send + 'static,
) -> Vec<(usize, usize)> {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    rt.spawn(async move {
        let mut late = Vec::new();
        for messages in (100..300).chain([128; 20]) {
            // Quick polls, so that budgets are renewed.
            for _ in 0..200 {
                volt::task::yield_now().await;
            }
            let after = volt::spawn(stop_after(messages)).await.unwrap();
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
    let late = late(after_the_stop);
    assert!(late.is_empty(), "(stop after, messages in spite of it): {late:?}");
}

#[test]
fn a_stop_in_a_select_is_before_all_messages_that_come_after_it() {
    let late = late(after_the_stop_of_a_select);
    assert!(late.is_empty(), "(stop after, messages in spite of it): {late:?}");
}
