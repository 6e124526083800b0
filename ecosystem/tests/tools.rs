//! What spawns, sleeps or opens sockets in `tokio-util`, `tokio-stream`, tower and `tokio-test`.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::time::{Instant, interval};
use tokio_stream::wrappers::{
    BroadcastStream, IntervalStream, ReceiverStream, TcpListenerStream, WatchStream,
};
use tokio_util::codec::{Framed, LinesCodec};
use tokio_util::sync::{CancellationToken, PollSemaphore, PollSender};
use tokio_util::task::{AbortOnDropHandle, JoinMap, TaskTracker};
use tokio_util::time::DelayQueue;
use tokio_util::udp::UdpFramed;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_spawned_tracked_and_cancelled() {
    let (tracker, token) = (TaskTracker::new(), CancellationToken::new());
    for _ in 0..10 {
        let token = token.clone();
        tracker.spawn(async move { token.cancelled().await });
    }
    assert_eq!(tracker.len(), 10);
    tracker.close();
    token.cancel();
    tracker.wait().await;

    let mut map = JoinMap::new();
    for key in 0..5 {
        map.spawn(key, async move { 10 * key });
    }
    let mut found = Vec::new();
    while let Some((key, value)) = map.join_next().await {
        found.push((key, value.unwrap()));
    }
    found.sort_unstable();
    assert_eq!(found, [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]);

    let (tx, mut rx) = mpsc::channel::<()>(1);
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let _tx = tx;
        std::future::pending::<()>().await;
    }));
    drop(task);
    assert_eq!(rx.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_delay_queue_goes_by_the_clock() {
    let start = Instant::now();
    let mut queue = DelayQueue::new();
    for i in [3, 1, 2] {
        queue.insert(i, i * 100 * MS);
    }
    let mut found = Vec::new();
    while let Some(expired) = queue.next().await {
        found.push((expired.into_inner(), start.elapsed().as_millis() / 100));
    }
    assert_eq!(found, [(1, 1), (2, 2), (3, 3)]);
}

#[tokio::test]
async fn channels_and_sockets_are_sinks_and_streams() {
    let (tx, rx) = mpsc::channel(1);
    let mut sender = PollSender::new(tx);
    let (sent, received) = tokio::join!(
        async move {
            for i in 0..5 {
                sender.send(i).await.unwrap();
            }
        },
        ReceiverStream::new(rx).collect::<Vec<_>>()
    );
    assert_eq!((sent, received), ((), vec![0, 1, 2, 3, 4]));

    let semaphore = std::sync::Arc::new(Semaphore::new(1));
    let mut permits = PollSemaphore::new(semaphore.clone());
    let permit = std::future::poll_fn(|cx| permits.poll_acquire(cx)).await;
    assert_eq!(semaphore.available_permits(), 0);
    drop(permit);

    let (tx, rx) = broadcast::channel(4);
    tx.send(1).unwrap();
    drop(tx);
    assert_eq!(BroadcastStream::new(rx).collect::<Vec<_>>().await, [Ok(1)]);
    let (tx, rx) = watch::channel(1);
    drop(tx);
    assert_eq!(WatchStream::new(rx).collect::<Vec<_>>().await, [1]);
    assert_eq!(IntervalStream::new(interval(MS)).take(3).count().await, 3);

    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let to = b.local_addr().unwrap();
    let (mut a, mut b) =
        (UdpFramed::new(a, LinesCodec::new()), UdpFramed::new(b, LinesCodec::new()));
    a.send(("a line", to)).await.unwrap();
    assert_eq!(b.next().await.unwrap().unwrap().0, "a line");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut connections = TcpListenerStream::new(listener);
    let (client, server) = tokio::join!(TcpStream::connect(address), connections.next());
    let mut client = Framed::new(client.unwrap(), LinesCodec::new());
    let mut server = Framed::new(server.unwrap().unwrap(), LinesCodec::new());
    client.send("another").await.unwrap();
    assert_eq!(server.next().await.unwrap().unwrap(), "another");
}

#[tokio::test(start_paused = true)]
async fn a_stack_of_tower_buffers_limits_and_times_out() {
    let start = Instant::now();
    let slow = service_fn(|wait: Duration| async move {
        tokio::time::sleep(wait).await;
        Ok::<_, tower::BoxError>(wait)
    });
    let mut service = ServiceBuilder::new()
        .buffer(8)
        .rate_limit(1, Duration::from_secs(60))
        .timeout(200 * MS)
        .service(slow);
    assert_eq!(service.ready().await.unwrap().call(MS).await.unwrap(), MS);
    let error = service.ready().await.unwrap().call(Duration::from_secs(600)).await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(60), "one a minute");
}

#[tokio::test(start_paused = true)]
async fn a_stream_times_out() {
    let mut stream = std::pin::pin!(tokio_stream::StreamExt::timeout(
        futures::stream::pending::<u8>(),
        100 * MS
    ));
    assert!(stream.next().await.unwrap().is_err());
    let chunks = futures::stream::iter(0..5).chain(futures::stream::pending());
    let mut chunks = std::pin::pin!(tokio_stream::StreamExt::chunks_timeout(chunks, 3, 100 * MS));
    assert_eq!(chunks.next().await, Some(vec![0, 1, 2]));
    assert_eq!(chunks.next().await, Some(vec![3, 4]));
}

#[test]
fn a_mock_waits_as_it_is_told() {
    let seen = tokio_test::block_on(async {
        let mut mock =
            tokio_test::io::Builder::new().read(b"one").wait(2 * MS).read(b"two").build();
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut mock, &mut text).await.unwrap();
        text
    });
    assert_eq!(seen, "onetwo");
}
