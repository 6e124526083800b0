// A program by the names of both runtimes; see `parity.rs`.

use std::time::Duration;

use rt::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use rt::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use rt::runtime::{Builder, Handle, worker_index};
use rt::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use rt::task::{JoinSet, LocalSet};
use rt::time::{Instant, interval, sleep, timeout};

rt::task_local! {
    static NUMBER: u32;
}

/// What takes type parameters, which `names.rs` cannot name: in use.
pub(crate) async fn run() {
    let directory = tempfile::tempdir().unwrap();
    files_and_streams(directory.path()).await;
    datagrams_and_unix(directory.path()).await;
    channels_and_locks().await;
    time_and_tasks().await;
    names_and_numbers().await;
}

async fn files_and_streams(directory: &std::path::Path) {
    let path = directory.join("file");
    rt::fs::write(&path, "one\ntwo\n").await.unwrap();
    let mut lines = BufReader::new(rt::fs::File::open(&path).await.unwrap()).lines();
    let mut count = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        assert_eq!(line.len(), 3);
        count += 1;
    }
    assert_eq!(count, 2);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = rt::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        rt::io::copy(&mut reader, &mut writer).await.unwrap()
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.set_nodelay(true).unwrap();
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).await.unwrap();
    assert_eq!((all.as_str(), server.await.unwrap()), ("hello", 5));
}

async fn datagrams_and_unix(directory: &std::path::Path) {
    let a = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let b = UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
    a.send_to(b"x", b.local_addr().unwrap()).await.unwrap();
    assert_eq!(b.recv_from(&mut [0; 4]).await.unwrap(), (1, a.local_addr().unwrap()));

    let path = directory.join("listener");
    let listener = UnixListener::bind(&path).unwrap();
    let (client, server) = rt::join!(UnixStream::connect(&path), listener.accept());
    client.unwrap().write_u8(7).await.unwrap();
    assert_eq!(server.unwrap().0.read_u8().await.unwrap(), 7);
    let path = directory.join("datagrams");
    let server = UnixDatagram::bind(&path).unwrap();
    UnixDatagram::unbound().unwrap().send_to(b"x", &path).await.unwrap();
    let mut buf = Vec::with_capacity(8);
    assert_eq!(server.recv_buf_from(&mut buf).await.unwrap().0, 1);
}

async fn channels_and_locks() {
    let (sender, mut receiver) = mpsc::channel(1);
    let (answer, question) = oneshot::channel();
    let (news, mut seen) = watch::channel(0);
    let (shout, mut heard) = broadcast::channel(4);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        sender.send(1).await.unwrap();
        answer.send(2).unwrap();
        news.send(3).unwrap();
        shout.send(4).unwrap();
        0
    });
    assert_eq!(receiver.recv().await, Some(1));
    assert_eq!(question.await, Ok(2));
    seen.wait_for(|value| *value == 3).await.unwrap();
    assert_eq!(heard.recv().await, Ok(4));
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 0);

    let shared =
        std::sync::Arc::new((Mutex::new(0), RwLock::new(0), Semaphore::new(1), Notify::new()));
    *shared.0.lock().await += 1;
    *shared.1.write().await += *shared.0.lock().await;
    drop(shared.2.acquire().await.unwrap());
    shared.3.notify_one();
    shared.3.notified().await;
}

async fn time_and_tasks() {
    let start = Instant::now();
    let mut ticks = interval(Duration::from_millis(1));
    ticks.tick().await;
    let late = rt::select! {
        biased;
        () = std::future::pending(), if start.elapsed().is_zero() => false,
        _ = ticks.tick() => true,
        else => false,
    };
    assert!(late && start.elapsed() >= Duration::from_millis(1));
    assert!(timeout(Duration::from_millis(1), sleep(Duration::from_secs(60))).await.is_err());

    NUMBER.scope(5, async { assert_eq!(NUMBER.with(|number| *number), 5) }).await;
    assert_eq!(rt::task::spawn_blocking(|| 6).await.unwrap(), 6);
    let local = LocalSet::new();
    let value = std::rc::Rc::new(8);
    let task = local.run_until(async move { rt::task::spawn_local(async move { *value }).await });
    assert_eq!(task.await.unwrap(), 8);
    let output = rt::process::Command::new("echo").arg("hello").output().await.unwrap();
    assert_eq!(output.stdout, b"hello\n");
}

async fn names_and_numbers() {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().max_io_events_per_tick(64).max_io_events_per_busy_tick(1);
    let other = builder.name("other").build().unwrap();
    let (here, there) = (Handle::current(), other.handle().clone());
    assert_eq!((here.name(), there.name()), (None, Some("other")));
    let ids = [here.id(), there.id(), LocalSet::new().id(), Handle::current().id()];
    assert_eq!(std::collections::HashSet::from(ids).len(), 3);
    assert_eq!(worker_index(), None, "the thread in `block_on`");
    assert_eq!(rt::task::spawn_blocking(worker_index).await.unwrap(), None);
    let thread = std::thread::spawn(move || {
        let error = Handle::try_current().unwrap_err();
        assert!(error.is_missing_context() && !error.is_thread_local_destroyed());
        other.block_on(async {
            assert_eq!(worker_index(), Some(0));
            datagrams_and_unix(tempfile::tempdir().unwrap().path()).await;
            rt::spawn(async { worker_index() }).await.unwrap()
        })
    });
    assert_eq!(thread.join().unwrap(), Some(0));
    for empty in ["", " "] {
        let refused = std::panic::catch_unwind(|| Builder::new_multi_thread().name(empty).build());
        assert!(refused.is_err());
    }
}
