//! Peers whose path has 108 bytes: the system allows one more than the standard library makes addresses of.
#![cfg(target_os = "linux")]

#[path = "support/net.rs"]
mod support;

use std::os::fd::AsRawFd;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};
use support::{bounded, each};
use volt::io::{AsyncReadExt, ReadBuf};
use volt::net::{UnixDatagram, UnixListener, UnixSocket};

/// Binds to a path of 108 bytes in `directory`, which leaves no room for a zero behind it.
fn bind_to_the_longest(socket: &Socket, directory: &Path) {
    let name = 108 - directory.join("x").as_os_str().len() + 1;
    let path = directory.join("x".repeat(name));
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut address =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    assert_eq!(bytes.len(), address.sun_path.len());
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    let fd = socket.as_raw_fd();
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `address` is valid for reads of `size` bytes.
    let result = unsafe { libc::bind(fd, (&raw const address).cast(), size) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_unix_datagram_from_the_longest_path_is_received() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let server_path = directory.path().join("server");
        let server = UnixDatagram::bind(&server_path).unwrap();
        let client = Socket::new(Domain::UNIX, Type::DGRAM, None).unwrap();
        bind_to_the_longest(&client, directory.path());
        let to = SockAddr::unix(&server_path).unwrap();
        for _ in 0..2 {
            client.send_to(b"abc", &to).unwrap();
            let mut bytes = Vec::with_capacity(8);
            let (count, _) = server.recv_buf_from(&mut bytes).await.unwrap();
            assert_eq!((count, &bytes[..]), (3, &b"abc"[..]));
        }
        client.send_to(b"abc", &to).unwrap();
        let mut room = [0; 8];
        let mut room = ReadBuf::new(&mut room);
        bounded(std::future::poll_fn(|cx| server.poll_recv_from(cx, &mut room))).await.unwrap();
        assert_eq!(room.filled(), b"abc");
        client.send_to(b"abc", &to).unwrap();
        server.readable().await.unwrap();
        let mut bytes = Vec::with_capacity(8);
        assert_eq!(server.try_recv_buf_from(&mut bytes).unwrap().0, 3);
    });
}

#[test]
fn a_unix_connection_from_the_longest_path_is_accepted() {
    each(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("server");
        let listener = UnixListener::bind(&path).unwrap();
        let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        bind_to_the_longest(&client, directory.path());
        client.connect(&SockAddr::unix(&path).unwrap()).unwrap();
        let (mut stream, from) = bounded(listener.accept()).await.unwrap();
        assert_eq!(from.as_pathname().unwrap().as_os_str().len(), 108);
        assert_eq!(client.send(b"abc").unwrap(), 3);
        let mut bytes = [0; 3];
        bounded(stream.read_exact(&mut bytes)).await.unwrap();
        assert_eq!(&bytes, b"abc");
        // One from a shorter path has its name.
        let near = directory.path().join("client");
        let client = UnixSocket::new_stream().unwrap();
        client.bind(&near).unwrap();
        let _client = client.connect(&path).await.unwrap();
        let (_stream, from) = bounded(listener.accept()).await.unwrap();
        assert_eq!(from.as_pathname(), Some(near.as_path()));
    });
}
