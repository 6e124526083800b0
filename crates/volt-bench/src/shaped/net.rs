//! Tokio-shaped sockets, compiled for each runtime that has them.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::rt::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use super::runtime::Multi;
use crate::kind::Sockets;

impl Sockets for Multi {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagram = UdpSocket;
    type Unix = UnixStream;

    async fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    async fn accept(listener: &mut TcpListener) -> TcpStream {
        let (stream, _) = listener.accept().await.expect("accept");
        stream.set_nodelay(true).expect("nodelay");
        stream
    }

    async fn connect(to: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(to).await.expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        stream
    }

    async fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
        stream.read_exact(buffer).await.is_ok()
    }

    async fn write(stream: &mut TcpStream, buffer: &[u8]) {
        stream.write_all(buffer).await.expect("write");
    }

    async fn datagrams() -> (UdpSocket, UdpSocket) {
        let a = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
        let b = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
        a.connect(b.local_addr().expect("bound")).await.expect("connect");
        b.connect(a.local_addr().expect("bound")).await.expect("connect");
        (a, b)
    }

    async fn send(socket: &UdpSocket, buffer: &[u8]) {
        socket.send(buffer).await.expect("send");
    }

    async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> usize {
        socket.recv(buffer).await.expect("recv")
    }

    async fn unix_pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("pair")
    }

    async fn unix_read(stream: &mut UnixStream, buffer: &mut [u8]) -> bool {
        stream.read_exact(buffer).await.is_ok()
    }

    async fn unix_write(stream: &mut UnixStream, buffer: &[u8]) {
        stream.write_all(buffer).await.expect("write");
    }
}
