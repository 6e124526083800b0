//! Sockets that are opened, used, half-closed and reset.

use std::time::Duration;

use volt::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use volt::net::{TcpListener, TcpStream, UnixDatagram, UnixListener, UnixStream};
use volt::time::{sleep, timeout};

use crate::support::{Context, Rng, bounded};

/// Sends back what comes, until the end or an error.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> u64 {
    let mut buffer = [0; 4096];
    let mut total = 0;
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            break;
        }
        total += count as u64;
    }
    total
}

/// Sends random bytes, half-closes, and gets the same bytes and the end.
async fn round_trip<R, W>(mut read: R, mut write: W, mut rng: Rng)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let length = 1 + rng.below(200_000) as usize;
    let sent: Vec<u8> = (0..length).map(|_| rng.next() as u8).collect();
    let copy = sent.clone();
    let writer = volt::spawn(async move {
        write.write_all(&copy).await.unwrap();
        write.shutdown().await.unwrap();
        write
    });
    let mut received = Vec::new();
    read.read_to_end(&mut received).await.unwrap();
    assert!(received == sent, "the bytes come back, in order");
    drop(writer.await.unwrap());
}

pub async fn tcp(mut c: Context) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tally = c.tally.clone();
    let server = volt::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let token = tally.plan();
            volt::spawn(async move {
                echo(stream).await;
                token.run();
            });
        }
    });
    let mut clients = Vec::new();
    for _ in 0..12 {
        let (mut rng, kind, token) = (c.rng.fork(), c.below(6), c.plan());
        clients.push(volt::spawn(bounded(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            match kind {
                0..=2 => {
                    let (read, write) = stream.into_split();
                    round_trip(read, write, rng).await;
                }
                3 => {
                    let _ = stream.write_all(&vec![1; rng.below(100_000) as usize]).await;
                    stream.set_zero_linger().unwrap();
                }
                4 => {
                    // A read that is given up, and a peer that has more to say than is read.
                    assert!(timeout(rng.micros(300), stream.read_u8()).await.is_err());
                    stream.write_all(&[7; 3000]).await.unwrap();
                    assert_eq!(stream.read_u8().await.unwrap(), 7);
                }
                _ => sleep(rng.micros(300)).await,
            }
            token.run();
        })));
    }
    for client in clients {
        client.await.unwrap();
    }
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    // A child process that is about to start may keep the listener open until it does, so whether
    // somebody listens is not asked.
}

pub async fn unix(mut c: Context) {
    let (left, right) = UnixStream::pair().unwrap();
    let server = volt::spawn(echo(right));
    let (read, write) = left.into_split();
    round_trip(read, write, c.rng.fork()).await;
    server.await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (path, rng) = (path.clone(), c.rng.fork());
            volt::spawn(bounded(async move {
                let (read, write) = UnixStream::connect(path).await.unwrap().into_split();
                round_trip(read, write, rng).await;
            }))
        })
        .collect();
    for _ in 0..3 {
        volt::spawn(echo(listener.accept().await.unwrap().0));
    }
    for client in clients {
        client.await.unwrap();
    }

    let (left, right) = UnixDatagram::pair().unwrap();
    let sender = volt::spawn(async move {
        for number in 0..200_u64 {
            left.send(&number.to_le_bytes()).await.unwrap();
        }
        left
    });
    let mut buffer = [0; 8];
    for number in 0..200_u64 {
        assert_eq!(right.recv(&mut buffer).await.unwrap(), 8);
        assert_eq!(u64::from_le_bytes(buffer), number);
    }
    drop(sender.await.unwrap());
    let _ = timeout(Duration::from_micros(100), right.recv(&mut buffer)).await;
}
