//! Those who connect, those who accept, and who looks for what arrives, or for its end, where they share a thread or not.

#[path = "support/net.rs"]
mod support;

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{bounded, each, tcp_pair};
use volt::io::{AsyncReadExt, AsyncWriteExt, Interest};
use volt::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use volt::runtime::{Builder, LocalRuntime};
use volt::task::{spawn_local, yield_now};

/// Connects so often to a listener whose queue has room for so many, and which a task serves.
async fn connect_in_a_loop(count: usize, room: u32) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(room).unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = volt::spawn(async move {
        for _ in 0..count {
            listener.accept().await.unwrap();
        }
    });
    for _ in 0..count {
        TcpStream::connect(address).await.unwrap();
    }
    acceptor.await.unwrap();
}

/// The queue of a listener is short, and a connection that finds it full is tried again after a second.
#[test]
fn who_connects_in_a_loop_lets_the_listener_accept() {
    let alone = Builder::new_current_thread().build().unwrap();
    let start = volt::time::Instant::now();
    // A minute, if each five of them fill it.
    alone.block_on(bounded(connect_in_a_loop(300, 4)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    each(|| async { bounded(connect_in_a_loop(64, 64)).await });
}

/// More at once than the standard library's listener has room for.
#[test]
fn a_listener_has_room_for_many_that_come_at_once() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(900));
        let come: Vec<_> = (0..180).map(|_| connect().unwrap()).collect();
        for _ in &come {
            bounded(listener.accept()).await.unwrap();
        }
    });
}

/// Beside so many that do nothing but yield.
async fn yields_until_it_has_arrived(beside: usize, spawn_yields: impl Fn(Arc<AtomicBool>)) {
    let (mut client, mut server) = tcp_pair().await;
    let echo = volt::spawn(async move {
        let mut byte = [0];
        while server.read_exact(&mut byte).await.is_ok() {
            server.write_all(&byte).await.unwrap();
        }
    });
    let stop = Arc::new(AtomicBool::new(false));
    (0..beside).for_each(|_| spawn_yields(stop.clone()));
    for round in 0..10 {
        client.write_all(&[round]).await.unwrap();
        let (mut byte, mut yields) = ([0], 0);
        while client.try_read(&mut byte).is_err() {
            yield_now().await;
            yields += 1;
        }
        assert_eq!(byte, [round]);
        assert!(yields <= 64, "{yields} beside {beside}, round {round}");
    }
    stop.store(true, Ordering::Relaxed);
    drop(client);
    echo.await.unwrap();
}

async fn yields_until(stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        yield_now().await;
    }
}

/// Where only this thread looks for events.
#[test]
fn what_was_sent_has_arrived_after_some_yields() {
    let rt = LocalRuntime::new().unwrap();
    for beside in [0, 3] {
        let spawns = |stop| drop(volt::spawn(yields_until(stop)));
        rt.block_on(bounded(yields_until_it_has_arrived(beside, spawns)));
        let spawns = |stop| drop(spawn_local(yields_until(stop)));
        let local = rt.spawn_local(yields_until_it_has_arrived(beside, spawns));
        rt.block_on(bounded(local)).unwrap();
    }
}

/// A caller may look for something else than data, as in the queue of errors, and then it tells nothing of the end.
#[test]
fn who_finds_no_error_has_not_used_up_the_end() {
    each(|| async {
        let (a, b) = tcp_pair().await;
        drop(b);
        bounded(a.readable()).await.unwrap();
        let queue = || Err::<(), _>(ErrorKind::WouldBlock.into());
        let found = a.try_io(Interest::READABLE | Interest::ERROR, queue);
        assert_eq!(found.unwrap_err().kind(), ErrorKind::WouldBlock);
        bounded(a.readable()).await.unwrap();
        assert_eq!(a.try_read(&mut [0; 8]).unwrap(), 0);
    });
}

/// Looks that find nothing become fewer, also if it is the future of `block_on` that yields.
#[test]
fn who_goes_on_yielding_waits_for_no_socket() {
    let rt = Builder::new_current_thread().build().unwrap();
    let turns = || rt.metrics().driver_wakeups_count();
    rt.block_on(async {
        let _socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        volt::time::sleep(Duration::from_millis(1)).await;
        let before = turns();
        for _ in 0..10_000 {
            yield_now().await;
        }
        let gained = turns() - before;
        assert!((16..5_000).contains(&gained), "{gained}");
    });
}

/// There, a connection that finds it full is refused at once.
#[test]
fn who_connects_to_a_path_in_a_loop_lets_the_listener_accept() {
    let rt = Builder::new_current_thread().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    rt.block_on(bounded(async {
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // Again, with less room.
        socket2::SockRef::from(&listener).listen(4).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        let acceptor = volt::spawn(async move {
            for _ in 0..64 {
                listener.accept().await.unwrap();
            }
        });
        for _ in 0..64 {
            UnixStream::connect(&path).await.unwrap();
        }
        acceptor.await.unwrap();
    }));
}

/// From now on this thread's `connect` finds no port. False if the system allows no such filter.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn leave_no_ports() -> bool {
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_connect as u32),
        step(answer, 0, libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32),
        step(answer, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers, and only takes rights from this thread.
    let unprivileged = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the kernel copies the program, which is valid and as long as it says.
    let filtered = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
    unprivileged == 0 && filtered == 0
}

/// The system says then that it would block, and no event ever says more.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
#[allow(clippy::disallowed_methods, reason = "a thread of its own for the filter")]
fn who_has_no_port_to_connect_from_is_not_connected() {
    let one = std::thread::spawn(|| {
        let runtime = Builder::new_current_thread().build().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        let connect = socket.connect("127.0.0.1:9".parse().unwrap());
        leave_no_ports().then(|| runtime.block_on(bounded(connect)).unwrap_err().kind())
    });
    if let Some(kind) = one.join().unwrap() {
        assert_eq!(kind, ErrorKind::WouldBlock);
    }
}
