// How it is read and written, in the names of both runtimes; see `random_streams.rs`. One module with `ends.rs` and `play.rs`.

use std::future::poll_fn;
use std::io::{IoSlice, IoSliceMut};
use std::net::Shutdown;

use bytes::BufMut;
use rt::io::{AsyncBufReadExt, BufReader, BufWriter, ReadBuf};

use crate::{Read, Try, Write};

/// Of datagrams: both kinds have the same methods.
macro_rules! datagram {
    ($shared:expr, $socket:ident => $do:expr) => {
        match $shared {
            Shared::Udp($socket, _) => $do,
            Shared::Datagram($socket) => $do,
            Shared::Fd(_) => unreachable!("no datagrams"),
        }
    };
}

fn taken() -> String {
    "not to be had".to_owned()
}

fn room(how: Read) -> usize {
    match how {
        Read::ToEnd => FEW,
        Read::Some(size)
        | Read::Exact(size)
        | Read::Buffer(size)
        | Read::Line(size)
        | Read::Lines(size)
        | Read::Take(size)
        | Read::Messages(size, _)
        | Read::Peek(size)
        | Read::Own(size)
        | Read::Ready(size) => size,
    }
}

async fn read(source: &mut Source<'_>, how: Read) -> String {
    let (size, count) = match how {
        Read::Messages(size, count) => (size, count),
        Read::Exact(size) => (size, 1),
        _ => {
            return match source {
                Source::Stream(reader) => read_stream(reader, how).await,
                Source::Shared(shared) => match &**shared {
                    Shared::Fd(fd) => read_fd(fd, how).await,
                    shared => receive(shared, how).await,
                },
            };
        }
    };
    let mut all = Vec::new();
    for number in 0..count {
        if let Err(error) = read_exact(source, size, &mut all).await {
            return format!("{} in {number}, {}", failed(&error), text(&all));
        }
    }
    text(&all)
}

async fn read_stream(reader: &mut Reading<'_>, how: Read) -> String {
    let mut buf = vec![0; room(how)];
    let result = match how {
        Read::Buffer(size) => {
            let mut buf = Vec::with_capacity(size).limit(size);
            let result = reader.io().read_buf(&mut buf).await;
            return got(result, buf.get_ref());
        }
        Read::Line(size) => {
            let (mut line, mut reader) = (Vec::new(), BufReader::with_capacity(size, reader.io()));
            let result = reader.read_until(b'\n', &mut line).await;
            return format!("{}, then {}", got(result, &line), text(reader.buffer()));
        }
        Read::Lines(size) => {
            let mut lines = BufReader::with_capacity(size, reader.io()).lines();
            let mut all = Vec::new();
            for _ in 0..3 {
                all.push(done(lines.next_line().await));
            }
            return format!("{all:?}");
        }
        Read::Take(_) | Read::ToEnd => {
            let mut all = Vec::new();
            let limit = if matches!(how, Read::ToEnd) { u64::MAX } else { buf.len() as u64 };
            return got(reader.io().take(limit).read_to_end(&mut all).await, &all);
        }
        Read::Peek(_) => match reader {
            Reading::Whole(whole) => match &mut **whole {
                Whole::Tcp(stream) => stream.peek(&mut buf).await,
                whole => whole.io().read(&mut buf).await,
            },
            Reading::Half(half) => match &mut **half {
                In::Tcp(stream) => stream.peek(&mut buf).await,
                _ => reader.io().read(&mut buf).await,
            },
        },
        Read::Own(_) => match reader.socket() {
            Socket::Tcp(s) => s.async_io(Interest::READABLE, || own_read(s, &mut buf)).await,
            Socket::Unix(s) => s.async_io(Interest::READABLE, || own_read(s, &mut buf)).await,
            Socket::Other => reader.io().read(&mut buf).await,
        },
        Read::Ready(_) => reader!(reader, stream => loop {
            let ready = stream.readable().await;
            let result = ready.and_then(|()| stream.try_read(&mut buf));
            if !would_block(&result) {
                break result;
            }
        }, memory => memory.read(&mut buf).await),
        Read::Some(_) | Read::Exact(_) | Read::Messages(..) => reader.io().read(&mut buf).await,
    };
    got(result, &buf)
}

/// A datagram.
async fn receive(shared: &Shared, how: Read) -> String {
    let mut buf = vec![0; room(how)];
    let mut spare = Vec::with_capacity(buf.len()).limit(buf.len());
    let result = match (how, shared) {
        (Read::Buffer(_), _) => datagram!(shared, socket => socket.recv_buf(&mut spare).await),
        (Read::Take(_), _) => datagram!(shared, socket => {
            socket.recv_buf_from(&mut spare).await.map(|(count, _)| count)
        }),
        (Read::ToEnd, _) => datagram!(shared, socket => {
            socket.recv_from(&mut buf).await.map(|(count, _)| count)
        }),
        (Read::Line(_), _) => datagram!(shared, socket => {
            let mut buf = ReadBuf::new(&mut buf);
            let result = poll_fn(|cx| socket.poll_recv(cx, &mut buf)).await;
            result.map(|()| buf.filled().len())
        }),
        (Read::Lines(_), _) => datagram!(shared, socket => {
            let mut buf = ReadBuf::new(&mut buf);
            let result = poll_fn(|cx| socket.poll_recv_from(cx, &mut buf)).await;
            result.map(|_| buf.filled().len())
        }),
        (Read::Own(_), _) => datagram!(shared, socket => {
            socket.async_io(Interest::READABLE, || own_read(&**socket, &mut buf)).await
        }),
        (Read::Ready(_), _) => datagram!(shared, socket => loop {
            let ready = socket.readable().await;
            let result = ready.and_then(|()| socket.try_recv(&mut buf));
            if !would_block(&result) {
                break result;
            }
        }),
        (Read::Peek(_), Shared::Udp(socket, _)) => socket.peek(&mut buf).await,
        _ => datagram!(shared, socket => socket.recv(&mut buf).await),
    };
    let is_spare = !spare.get_ref().is_empty();
    got(result, if is_spare { spare.get_ref() } else { &buf })
}

async fn read_fd(fd: &AsyncFd<StdStream>, how: Read) -> String {
    let mut buf = vec![0; room(how)];
    let result = match how {
        Read::Own(_) | Read::Peek(_) | Read::Buffer(_) => {
            fd.async_io(Interest::READABLE, |stream| own_read(stream, &mut buf)).await
        }
        _ => loop {
            match fd.readable().await {
                Ok(mut guard) => {
                    if let Ok(result) = guard.try_io(|fd| own_read(fd.get_ref(), &mut buf)) {
                        break result;
                    }
                }
                Err(error) => break Err(error),
            }
        },
    };
    got(result, &buf)
}

async fn read_exact(source: &mut Source<'_>, size: usize, all: &mut Vec<u8>) -> io::Result<()> {
    let (mut buf, mut count) = (vec![0; size], 0);
    match source {
        Source::Stream(reader) => count = reader.io().read_exact(&mut buf).await?,
        Source::Shared(shared) => match &**shared {
            Shared::Fd(fd) => {
                while count < size {
                    let rest = &mut buf[count..];
                    match fd.async_io(Interest::READABLE, |stream| own_read(stream, rest)).await? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        more => count += more,
                    }
                }
            }
            shared => count = datagram!(shared, socket => socket.recv(&mut buf).await?),
        },
    }
    all.extend_from_slice(&buf[..count]);
    Ok(())
}

fn try_read(source: Source<'_>, how: Try, size: usize) -> String {
    let mut buf = vec![0; size];
    let mut spare = Vec::with_capacity(size).limit(size);
    let result = match (how, source) {
        (Try::Vectored(more), Source::Stream(mut reader)) => {
            let mut other = vec![0; more];
            let mut parts = [IoSliceMut::new(&mut buf), IoSliceMut::new(&mut other)];
            let result = reader!(&mut reader, stream => stream.try_read_vectored(&mut parts), _memory => return taken());
            buf.append(&mut other);
            result
        }
        (Try::Own, Source::Stream(reader)) => match reader.socket() {
            Socket::Tcp(s) => s.try_io(Interest::READABLE, || own_read(s, &mut buf)),
            Socket::Unix(s) => s.try_io(Interest::READABLE, || own_read(s, &mut buf)),
            Socket::Other => return taken(),
        },
        (Try::Buffer, Source::Stream(mut reader)) => {
            reader!(&mut reader, stream => stream.try_read_buf(&mut spare), _memory => return taken())
        }
        (_, Source::Stream(mut reader)) => {
            reader!(&mut reader, stream => stream.try_read(&mut buf), _memory => return taken())
        }
        (_, Source::Shared(shared)) => match (how, &*shared) {
            (_, Shared::Fd(fd)) => {
                fd.try_io(Interest::READABLE, |stream| own_read(stream, &mut buf))
            }
            (Try::Buffer, shared) => datagram!(shared, socket => socket.try_recv_buf(&mut spare)),
            (Try::Own, shared) => datagram!(shared, socket => {
                socket.try_io(Interest::READABLE, || own_read(&**socket, &mut buf))
            }),
            (_, shared) => datagram!(shared, socket => socket.try_recv(&mut buf)),
        },
    };
    let is_spare = !spare.get_ref().is_empty();
    got(result, if is_spare { spare.get_ref() } else { &buf })
}

/// Writes `bytes`, and `more` as well where there are several parts. (What takes time is written by `Me::write`.)
async fn write(target: &mut Target<'_>, how: Write, bytes: &[u8], more: &[u8]) -> String {
    match (how, target) {
        (Write::All(_) | Write::Messages(..), target) => done(write_all(target, bytes).await),
        (_, Target::Stream(writer)) => write_stream(writer, how, bytes, more).await,
        (_, Target::Shared(shared)) => send(shared, how, bytes).await,
    }
}

async fn write_stream(writer: &mut Writing<'_>, how: Write, bytes: &[u8], more: &[u8]) -> String {
    match how {
        Write::Vectored(..) if !writer.is_pipe() => {
            let parts = [bytes, &[], more].map(IoSlice::new);
            let result = writer.io().write_vectored(&parts).await;
            let is_short = result.as_ref().is_ok_and(|count| *count < bytes.len() + more.len());
            // See `random_streams.rs`.
            if let (true, Socket::Unix(stream)) = (is_short, writer.socket()) {
                return format!("{}, then {}", done(result), done(stream.try_write(b"more")));
            }
            done(result)
        }
        Write::Buffered(_) => {
            let mut writer = BufWriter::with_capacity(64, writer.io());
            for part in bytes.chunks(50) {
                if let Err(error) = writer.write_all(part).await {
                    return failed(&error);
                }
            }
            done(writer.flush().await)
        }
        Write::Flush => done(writer.io().flush().await),
        Write::Shutdown => done(writer.io().shutdown().await),
        Write::Own(_) => done(match writer.socket() {
            Socket::Tcp(s) => s.async_io(Interest::WRITABLE, || own_write(s, bytes)).await,
            Socket::Unix(s) => s.async_io(Interest::WRITABLE, || own_write(s, bytes)).await,
            Socket::Other => writer.io().write(bytes).await,
        }),
        Write::Ready(_) => done(writer!(writer, stream => loop {
            let ready = stream.writable().await;
            let result = ready.and_then(|()| stream.try_write(bytes));
            if !would_block(&result) {
                break result;
            }
        }, memory => memory.write(bytes).await)),
        Write::Some(_) | Write::All(_) | Write::Messages(..) | Write::Vectored(..) => {
            done(writer.io().write(bytes).await)
        }
    }
}

/// Without exclusive access.
async fn send(shared: &Shared, how: Write, bytes: &[u8]) -> String {
    match (how, shared) {
        (Write::Flush, _) | (Write::Shutdown, Shared::Udp(..)) => "nothing to do".to_owned(),
        (Write::Shutdown, Shared::Datagram(socket)) => done(socket.shutdown(Shutdown::Write)),
        (Write::Shutdown, Shared::Fd(fd)) => done(fd.get_ref().shutdown(Shutdown::Write)),
        (Write::Own(_), Shared::Udp(_, None) | Shared::Datagram(_)) => {
            done(datagram!(shared, socket => {
                socket.async_io(Interest::WRITABLE, || own_write(&**socket, bytes)).await
            }))
        }
        (Write::Vectored(..), Shared::Udp(socket, Some(peer))) => {
            done(poll_fn(|cx| socket.poll_send_to(cx, bytes, *peer)).await)
        }
        (Write::Vectored(..), Shared::Udp(_, None) | Shared::Datagram(_)) => {
            done(datagram!(shared, socket => poll_fn(|cx| socket.poll_send(cx, bytes)).await))
        }
        (Write::Vectored(..), Shared::Fd(fd)) => done(loop {
            match fd.writable().await {
                Ok(mut guard) => {
                    if let Ok(result) = guard.try_io(|fd| own_write(fd.get_ref(), bytes)) {
                        break result;
                    }
                }
                Err(error) => break Err(error),
            }
        }),
        (Write::Ready(_), _) => done(loop {
            let ready = match shared {
                Shared::Fd(fd) => fd.writable().await.map(drop),
                shared => datagram!(shared, socket => socket.writable().await),
            };
            let result = ready.and_then(|()| try_send(shared, bytes));
            if !would_block(&result) {
                break result;
            }
        }),
        _ => done(send_some(shared, bytes).await),
    }
}

async fn write_all(target: &mut Target<'_>, bytes: &[u8]) -> io::Result<()> {
    let shared = match target {
        Target::Stream(writer) => return writer.io().write_all(bytes).await,
        Target::Shared(shared) => &**shared,
    };
    let mut count = send_some(shared, bytes).await?;
    while matches!(shared, Shared::Fd(_)) && count < bytes.len() {
        count += send_some(shared, &bytes[count..]).await?;
    }
    Ok(())
}

async fn send_some(shared: &Shared, bytes: &[u8]) -> io::Result<usize> {
    match shared {
        Shared::Udp(socket, Some(peer)) => socket.send_to(bytes, peer).await,
        Shared::Fd(fd) => fd.async_io(Interest::WRITABLE, |stream| own_write(stream, bytes)).await,
        shared => datagram!(shared, socket => socket.send(bytes).await),
    }
}

fn try_write(target: Target<'_>, how: Try, bytes: &[u8], more: &[u8]) -> String {
    done(match (how, target) {
        (Try::Vectored(_), Target::Stream(mut writer)) => {
            let parts = [bytes, more].map(IoSlice::new);
            writer!(&mut writer, stream => stream.try_write_vectored(&parts), _memory => return taken())
        }
        (Try::Own, Target::Stream(writer)) => match writer.socket() {
            Socket::Tcp(s) => s.try_io(Interest::WRITABLE, || own_write(s, bytes)),
            Socket::Unix(s) => s.try_io(Interest::WRITABLE, || own_write(s, bytes)),
            Socket::Other => return taken(),
        },
        (_, Target::Stream(mut writer)) => {
            writer!(&mut writer, stream => stream.try_write(bytes), _memory => return taken())
        }
        (_, Target::Shared(shared)) => try_send(&shared, bytes),
    })
}

fn try_send(shared: &Shared, bytes: &[u8]) -> io::Result<usize> {
    match shared {
        Shared::Udp(socket, Some(peer)) => socket.try_send_to(bytes, *peer),
        Shared::Fd(fd) => fd.try_io(Interest::WRITABLE, |stream| own_write(stream, bytes)),
        shared => datagram!(shared, socket => socket.try_send(bytes)),
    }
}

/// What `socket` is ready for. An `AsyncFd` may have that cleared.
async fn ready(shared: &Shared, interest: Interest, clears: bool) -> io::Result<Ready> {
    let Shared::Fd(fd) = shared else {
        return datagram!(shared, socket => socket.ready(interest).await);
    };
    let mut guard = fd.ready(interest).await?;
    let ready = guard.ready();
    if clears {
        guard.clear_ready();
    }
    Ok(ready)
}
