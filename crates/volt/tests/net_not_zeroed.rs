//! A read writes what it has received, and no byte of the buffer besides: nothing zeroes it first.
//!
//! After a short read of `HELLO` into memory that is not initialised, the `ReadBuf` says that only so
//! many bytes are.

#[path = "support/net.rs"]
mod support;

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use support::{bounded, each, tcp_pair, udp_pair};
use volt::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use volt::net::unix::pipe;
use volt::net::{UnixDatagram, UnixStream};

const HELLO: &[u8] = b"hello";

/// Streams of unix sockets read less than 512 bytes in another way than more.
const ROOMS: [usize; 3] = [64, 511, 4096];

/// Polls `read` until it is ready, and looks at what it has left in the buffer. A second time, the
/// buffer has something in it already.
async fn check(
    what: &str,
    room: usize,
    mut read: impl FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<std::io::Result<()>>,
) {
    let mut memory = vec![MaybeUninit::uninit(); room];
    let mut buf = ReadBuf::uninit(&mut memory);
    bounded(std::future::poll_fn(|cx| read(cx, &mut buf))).await.unwrap();
    assert_eq!(buf.filled(), HELLO, "{what}, {room} bytes of room");
    assert_eq!(buf.initialized().len(), HELLO.len(), "{what}, {room} bytes of room");
}

/// `AsyncRead` of `reader`, to which `writer` writes.
async fn check_stream(
    what: &str,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
) {
    for room in ROOMS {
        writer.write_all(HELLO).await.unwrap();
        check(what, room, |cx, buf| Pin::new(&mut reader).poll_read(cx, buf)).await;
    }
}

#[test]
fn reads_of_streams_and_their_halves() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        check_stream("TcpStream", client, server).await;
        let (mut client, server) = tcp_pair().await;
        check_stream("tcp::ReadHalf", client.split().0, server).await;
        let (client, server) = tcp_pair().await;
        let (reader, _writer) = client.into_split();
        check_stream("tcp::OwnedReadHalf", reader, server).await;

        let (a, b) = UnixStream::pair().unwrap();
        check_stream("UnixStream", a, b).await;
        let (mut a, b) = UnixStream::pair().unwrap();
        check_stream("unix::ReadHalf", a.split().0, b).await;
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, _writer) = a.into_split();
        check_stream("unix::OwnedReadHalf", reader, b).await;

        let (sender, receiver) = pipe::pipe().unwrap();
        check_stream("pipe::Receiver", receiver, sender).await;
    });
}

#[test]
fn peeks_and_datagrams() {
    each(|| async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(HELLO).await.unwrap();
        let peek = "TcpStream::poll_peek";
        check(peek, 64, |cx, buf| server.poll_peek(cx, buf).map_ok(drop)).await;
        let (mut half, _) = server.split();
        check(peek, 64, |cx, buf| half.poll_peek(cx, buf).map_ok(drop)).await;
        let (mut half, _writer) = server.into_split();
        check(peek, 64, |cx, buf| half.poll_peek(cx, buf).map_ok(drop)).await;

        let (a, b) = udp_pair().await;
        for _ in 0..2 {
            b.send(HELLO).await.unwrap();
        }
        check("UdpSocket::poll_peek", 64, |cx, buf| a.poll_peek(cx, buf)).await;
        let peek = "UdpSocket::poll_peek_from";
        check(peek, 64, |cx, buf| a.poll_peek_from(cx, buf).map_ok(drop)).await;
        check("UdpSocket::poll_recv", 64, |cx, buf| a.poll_recv(cx, buf)).await;
        let receive = "UdpSocket::poll_recv_from";
        check(receive, 64, |cx, buf| a.poll_recv_from(cx, buf).map_ok(drop)).await;

        let (a, b) = UnixDatagram::pair().unwrap();
        for _ in 0..2 {
            b.send(HELLO).await.unwrap();
        }
        check("UnixDatagram::poll_recv", 64, |cx, buf| a.poll_recv(cx, buf)).await;
        let receive = "UnixDatagram::poll_recv_from";
        check(receive, 64, |cx, buf| a.poll_recv_from(cx, buf).map_ok(drop)).await;
    });
}

/// A buffer that has bytes in it already, and some that are initialised behind them: a read goes
/// behind the filled part, and what is initialised stays so.
#[test]
fn a_read_goes_behind_what_is_there() {
    each(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        for (front, initialised) in [(3, 3), (3, 6), (3, 20), (0, 20)] {
            let mut memory = [MaybeUninit::uninit(); 64];
            let mut buf = ReadBuf::uninit(&mut memory);
            let _zeros = buf.initialize_unfilled_to(initialised);
            buf.advance(front);
            b.write_all(HELLO).await.unwrap();
            let read = std::future::poll_fn(|cx| Pin::new(&mut a).poll_read(cx, &mut buf));
            bounded(read).await.unwrap();
            assert_eq!(&buf.filled()[front..], HELLO);
            assert_eq!(buf.initialized().len(), initialised.max(front + HELLO.len()));
        }
    });
}

/// What reads into a `Vec`'s spare room adds what there is, and leaves the rest of the room as it was.
#[test]
fn the_spare_room_of_a_vec() {
    const FREE: u8 = 0xA5;
    /// Room whose bytes are known, so that one that is zeroed is seen.
    fn marked() -> Vec<u8> {
        let mut room = vec![FREE; 64];
        room.clear();
        room
    }
    fn check(what: &str, mut room: Vec<u8>, count: usize) {
        assert_eq!((count, &*room), (HELLO.len(), HELLO), "{what}");
        let spare = room.spare_capacity_mut();
        // SAFETY: `marked` has written the whole of the room, and a read only writes more.
        let untouched = spare[..40].iter().all(|byte| unsafe { byte.assume_init() } == FREE);
        assert!(untouched, "{what}");
    }
    each(|| async {
        let (mut client, server) = tcp_pair().await;
        client.write_all(HELLO).await.unwrap();
        server.readable().await.unwrap();
        let mut room = marked();
        let count = server.try_read_buf(&mut room).unwrap();
        check("TcpStream::try_read_buf", room, count);

        let (mut sender, receiver) = pipe::pipe().unwrap();
        sender.write_all(HELLO).await.unwrap();
        receiver.readable().await.unwrap();
        let mut room = marked();
        let count = receiver.try_read_buf(&mut room).unwrap();
        check("pipe::Receiver::try_read_buf", room, count);

        let (a, b) = udp_pair().await;
        for _ in 0..2 {
            b.send(HELLO).await.unwrap();
        }
        let mut room = marked();
        let count = a.recv_buf(&mut room).await.unwrap();
        check("UdpSocket::recv_buf", room, count);
        let mut room = marked();
        let (count, _) = a.recv_buf_from(&mut room).await.unwrap();
        check("UdpSocket::recv_buf_from", room, count);
    });
}
