//! Channels, locks and timers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use volt::sync::broadcast::error::RecvError;
use volt::sync::{
    Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpmc, mpsc, oneshot, watch,
};
use volt::task::yield_now;
use volt::time::{interval, sleep, timeout};

use crate::support::Context;

pub async fn mpsc(mut c: Context) {
    let capacity = 1 + c.below(8) as usize;
    let (tx, mut rx) = mpsc::channel(capacity);
    let mut senders = Vec::new();
    for sender in 0..4_usize {
        let (tx, mut rng, tally) = (tx.clone(), c.rng.fork(), c.tally.clone());
        senders.push(volt::spawn(async move {
            let mut sent = 0_u64;
            for _ in 0..100 {
                let message = (sender, sent, tally.token());
                match rng.below(8) {
                    // Given up: then it was not sent.
                    0 => {
                        let wait = rng.micros(50);
                        sent +=
                            u64::from(matches!(timeout(wait, tx.send(message)).await, Ok(Ok(()))));
                    }
                    1 => sent += u64::from(tx.try_send(message).is_ok()),
                    2 => {
                        tx.reserve().await.unwrap().send(message);
                        sent += 1;
                    }
                    _ => {
                        tx.send(message).await.unwrap();
                        sent += 1;
                    }
                }
            }
            sent
        }));
    }
    drop(tx);
    let mut received = [0_u64; 4];
    loop {
        let message = match c.below(6) {
            0 => match timeout(c.rng.micros(50), rx.recv()).await {
                Ok(message) => message,
                Err(_) => continue,
            },
            _ => rx.recv().await,
        };
        let Some((sender, number, _token)) = message else { break };
        assert_eq!(number, received[sender], "in order, each once");
        received[sender] += 1;
    }
    for (sender, received) in senders.into_iter().zip(received) {
        assert_eq!(sender.await.unwrap(), received, "messages of a sender");
    }
    // Messages that nobody receives are dropped with the channel.
    let (tx, rx) = mpsc::unbounded_channel();
    (0..10).for_each(|_| assert!(tx.send(c.token()).is_ok()));
    if c.below(2) == 0 {
        drop(tx);
        drop(rx);
    }
}

pub async fn mpmc(mut c: Context) {
    let (tx, rx) = match c.below(3) {
        0 => mpmc::unbounded(),
        _ => mpmc::bounded(1 + c.below(6) as usize),
    };
    let count = 400_u64;
    let taken: Arc<Vec<_>> = Arc::new((0..count).map(|_| AtomicU64::new(0)).collect());
    let mut tasks = Vec::new();
    for part in 0..4 {
        let (tx, tally) = (tx.clone(), c.tally.clone());
        tasks.push(volt::spawn(async move {
            for number in part * count / 4..(part + 1) * count / 4 {
                tx.send((number, tally.token())).await.unwrap();
            }
        }));
    }
    drop(tx);
    for _ in 0..3 {
        let (rx, mut rng, taken) = (rx.clone(), c.rng.fork(), taken.clone());
        tasks.push(volt::spawn(async move {
            loop {
                let message = match rng.below(5) {
                    0 => match timeout(rng.micros(50), rx.recv()).await {
                        Ok(message) => message,
                        Err(_) => continue,
                    },
                    _ => rx.recv().await,
                };
                let Some((number, _token)) = message else { break };
                taken[number as usize].fetch_add(1, SeqCst);
            }
        }));
    }
    drop(rx);
    for task in tasks {
        task.await.unwrap();
    }
    assert!(taken.iter().all(|taken| taken.load(SeqCst) == 1), "each message once");
}

pub async fn broadcast(mut c: Context) {
    let (tx, _) = broadcast::channel(1 << c.below(5));
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (mut rx, mut rng) = (tx.subscribe(), c.rng.fork());
        tasks.push(volt::spawn(async move {
            let mut next = 0_u64;
            loop {
                let received = match rng.below(4) {
                    0 => match timeout(rng.micros(50), rx.recv()).await {
                        Ok(received) => received,
                        Err(_) => continue,
                    },
                    _ => rx.recv().await,
                };
                match received {
                    Ok(number) => {
                        assert_eq!(number, next, "in order, each once");
                        next += 1;
                    }
                    Err(RecvError::Lagged(missed)) => next += missed,
                    Err(RecvError::Closed) => return next,
                }
            }
        }));
    }
    for number in 0..200_u64 {
        tx.send(number).unwrap();
        if c.below(3) == 0 {
            yield_now().await;
        }
    }
    drop(tx);
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200, "each message received or reported");
    }
}

pub async fn watch_and_oneshot(mut c: Context) {
    let (tx, rx) = watch::channel(0_u64);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let mut rx = rx.clone();
        tasks.push(volt::spawn(async move {
            let mut last = 0;
            while rx.changed().await.is_ok() {
                let now = *rx.borrow_and_update();
                assert!(now > last, "versions only grow");
                last = now;
            }
            *rx.borrow()
        }));
    }
    drop(rx);
    for number in 1..=100 {
        tx.send(number).unwrap();
        if c.below(3) == 0 {
            yield_now().await;
        }
    }
    drop(tx);
    for task in tasks {
        assert_eq!(task.await.unwrap(), 100, "the last value is seen");
    }

    for _ in 0..50 {
        let (tx, mut rx) = oneshot::channel();
        let (token, kind, wait) = (c.token(), c.below(4), c.rng.micros(50));
        let sender = volt::spawn(async move {
            yield_now().await;
            kind != 0 && tx.send(token).is_ok()
        });
        let received = match kind {
            1 => {
                rx.close();
                rx.try_recv().is_ok()
            }
            2 => match timeout(wait, &mut rx).await {
                Ok(result) => result.is_ok(),
                Err(_) => {
                    rx.close();
                    rx.try_recv().is_ok()
                }
            },
            _ => rx.await.is_ok(),
        };
        assert_eq!(sender.await.unwrap(), received, "sent is received");
    }
}

struct Locks {
    mutex: Mutex<u64>,
    rwlock: RwLock<(u64, u64)>,
    semaphore: Semaphore,
    inside: AtomicU64,
}

pub async fn locks(mut c: Context) {
    let locks = Arc::new(Locks {
        mutex: Mutex::new(0),
        rwlock: RwLock::new((0, 0)),
        semaphore: Semaphore::new(3),
        inside: AtomicU64::new(0),
    });
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let (locks, mut rng) = (locks.clone(), c.rng.fork());
        tasks.push(volt::spawn(async move {
            let mut added = 0;
            for _ in 0..60 {
                let wait = rng.micros(40);
                if let Ok(mut guard) = timeout(wait, locks.mutex.lock()).await {
                    let value = *guard;
                    if rng.below(3) == 0 {
                        yield_now().await;
                    }
                    *guard = value + 1;
                    added += 1;
                }
                if rng.below(3) == 0 {
                    let mut guard = locks.rwlock.write().await;
                    guard.0 += 1;
                    yield_now().await;
                    guard.1 += 1;
                } else if let Ok(guard) = timeout(wait, locks.rwlock.read()).await {
                    yield_now().await;
                    assert_eq!(guard.0, guard.1, "a reader between a writer's steps");
                }
                let many = 1 + rng.below(3);
                if let Ok(permits) = timeout(wait, locks.semaphore.acquire_many(many as u32)).await
                {
                    let inside = locks.inside.fetch_add(many, SeqCst) + many;
                    assert!(inside <= 3, "{inside} of 3 permits");
                    yield_now().await;
                    locks.inside.fetch_sub(many, SeqCst);
                    drop(permits);
                }
            }
            added
        }));
    }
    let mut added = 0;
    for task in tasks {
        added += task.await.unwrap();
    }
    assert_eq!(*locks.mutex.lock().await, added, "no update is lost");
    assert_eq!(locks.semaphore.available_permits(), 3, "permits come back");
    meet(&mut c).await;
}

/// `Notify` as a baton, and a `Barrier`.
async fn meet(c: &mut Context) {
    let notify = Arc::new(Notify::new());
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let (notify, token, wait) = (notify.clone(), c.plan(), c.rng.micros(30));
        tasks.push(volt::spawn(async move {
            // Gives up first: a notification that comes meanwhile must go on to another.
            if timeout(wait, notify.notified()).await.is_err() {
                notify.notified().await;
            }
            notify.notify_one();
            token.run();
        }));
    }
    notify.notify_one();
    for task in tasks {
        task.await.unwrap();
    }
    let barrier = Arc::new(Barrier::new(3));
    let leaders = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (barrier, leaders) = (barrier.clone(), leaders.clone());
            volt::spawn(async move {
                for _ in 0..10 {
                    let leads = barrier.wait().await.is_leader();
                    leaders.fetch_add(u64::from(leads), SeqCst);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(leaders.load(SeqCst), 10, "one leader each time");
}

pub async fn timers(mut c: Context) {
    let mut tasks = Vec::new();
    for _ in 0..200 {
        let (token, wait, other) = (c.plan(), c.rng.micros(20_000), c.rng.micros(20_000));
        let kind = c.below(4);
        tasks.push(volt::spawn(async move {
            let start = Instant::now();
            match kind {
                0 => sleep(wait).await,
                1 => assert!(timeout(wait, std::future::pending::<()>()).await.is_err()),
                2 => {
                    let mut timer = std::pin::pin!(sleep(other));
                    let _ = timeout(wait / 2, timer.as_mut()).await;
                    timer.as_mut().reset(volt::time::Instant::now() + wait);
                    timer.await;
                }
                _ => volt::select! {
                    () = sleep(wait) => {}
                    () = sleep(wait + Duration::from_secs(3600)) => panic!("an hour passed"),
                },
            }
            assert!(start.elapsed() >= wait, "{:?} early", wait - start.elapsed());
            token.run();
        }));
    }
    let start = Instant::now();
    let period = Duration::from_micros(100 + c.below(900));
    let mut ticks = interval(period);
    for number in 0..10 {
        ticks.tick().await;
        assert!(start.elapsed() >= period * number, "tick {number} is early");
    }
    for task in tasks {
        task.await.unwrap();
    }
}
