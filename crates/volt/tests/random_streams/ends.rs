// The connections of a program, and what they are read from and written to by, in the names of both runtimes; see
// `random_streams.rs`. `play.rs` goes on in the same module.

use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex as Cell, PoisonError};
use std::time::Duration;

use rt::io::unix::AsyncFd;
use rt::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, Interest, ReadHalf, Ready,
    WriteHalf,
};
use rt::net::unix::pipe;
use rt::net::{
    TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream, tcp, unix,
};
use socket2::SockRef;

use crate::{Kind, Side, Udp};

/// The sizes of what a pipe and a unix stream have room for: the smallest that the system allows, for the latter some more than
/// that.
const PIPE: i32 = 4096;
const STREAM: usize = 2304;

/// What whoever waits with it takes out of its place for that time.
struct Place<T>(Cell<Option<T>>);

struct Taken<'p, T> {
    place: &'p Place<T>,
    item: Option<T>,
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self(Cell::new(None))
    }
}

impl<T> Place<T> {
    fn put(&self, item: T) {
        let old = lock(&self.0).replace(item);
        drop(old);
    }

    fn clear(&self) -> bool {
        let item = lock(&self.0).take();
        item.is_some()
    }

    fn take(&self) -> Option<Taken<'_, T>> {
        let item = lock(&self.0).take()?;
        Some(Taken { place: self, item: Some(item) })
    }
}

impl<T> Taken<'_, T> {
    /// It stays out for good.
    fn keep(mut self) -> T {
        self.item.take().expect("taken")
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("taken")
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("taken")
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.place.put(item);
        }
    }
}

fn lock<T>(cell: &Cell<T>) -> std::sync::MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Whole {
    Tcp(TcpStream),
    Unix(UnixStream),
    Memory(DuplexStream),
}

enum In {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
    Pipe(pipe::Receiver),
    Memory(ReadHalf<DuplexStream>),
}

enum Out {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
    Pipe(pipe::Sender),
    Memory(WriteHalf<DuplexStream>),
}

/// What is read from and written to at once, but not by several tasks: it is not told which of them is first.
#[derive(Clone)]
enum Shared {
    /// And where to send to, if it is not connected.
    Udp(Arc<UdpSocket>, Option<SocketAddr>),
    Datagram(Arc<UnixDatagram>),
    Fd(Arc<AsyncFd<StdStream>>),
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

enum Address {
    Tcp(SocketAddr),
    Unix(String),
}

/// A stream, either whole or in halves, or what is shared.
#[derive(Default)]
struct End {
    whole: Place<Whole>,
    reader: Place<In>,
    writer: Place<Out>,
    to_receive: Place<Shared>,
    to_send: Place<Shared>,
    written: AtomicU32,
}

struct Connection {
    kind: Kind,
    ends: [End; 2],
    /// And where to connect to.
    listener: Place<Listener>,
    /// The descriptors of TCP, also of what is closed by now.
    sockets: Cell<Vec<RawFd>>,
    address: Option<Address>,
}

enum Reading<'p> {
    Whole(Taken<'p, Whole>),
    Half(Taken<'p, In>),
}

enum Writing<'p> {
    Whole(Taken<'p, Whole>),
    Half(Taken<'p, Out>),
}

macro_rules! reader {
    ($reader:expr, $stream:ident => $do:expr, $memory:ident => $other:expr) => {
        match $reader {
            Reading::Whole(whole) => match &mut **whole {
                Whole::Tcp($stream) => $do,
                Whole::Unix($stream) => $do,
                Whole::Memory($memory) => $other,
            },
            Reading::Half(half) => match &mut **half {
                In::Tcp($stream) => $do,
                In::Unix($stream) => $do,
                In::Pipe($stream) => $do,
                In::Memory($memory) => $other,
            },
        }
    };
}

macro_rules! writer {
    ($writer:expr, $stream:ident => $do:expr, $memory:ident => $other:expr) => {
        match $writer {
            Writing::Whole(whole) => match &mut **whole {
                Whole::Tcp($stream) => $do,
                Whole::Unix($stream) => $do,
                Whole::Memory($memory) => $other,
            },
            Writing::Half(half) => match &mut **half {
                Out::Tcp($stream) => $do,
                Out::Unix($stream) => $do,
                Out::Pipe($stream) => $do,
                Out::Memory($memory) => $other,
            },
        }
    };
}

/// What has methods of its own that `io`'s traits have not.
#[derive(Clone, Copy)]
enum Socket<'s> {
    Tcp(&'s TcpStream),
    Unix(&'s UnixStream),
    Other,
}

impl Source<'_> {
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Self::Shared(shared) => match &**shared {
                Shared::Udp(socket, _) => socket.take_error(),
                Shared::Datagram(socket) => socket.take_error(),
                Shared::Fd(fd) => fd.get_ref().take_error(),
            },
            Self::Stream(reader) => match reader.socket() {
                Socket::Tcp(stream) => stream.take_error(),
                Socket::Unix(stream) => stream.take_error(),
                Socket::Other => Ok(None),
            },
        }
    }
}

impl Reading<'_> {
    fn io(&mut self) -> &mut (dyn AsyncRead + Send + Unpin) {
        reader!(self, stream => stream, memory => memory)
    }

    fn socket(&self) -> Socket<'_> {
        match self {
            Self::Whole(whole) => whole.socket(),
            Self::Half(half) => match &**half {
                In::Tcp(half) => Socket::Tcp(half.as_ref()),
                In::Unix(half) => Socket::Unix(half.as_ref()),
                In::Pipe(_) | In::Memory(_) => Socket::Other,
            },
        }
    }
}

impl Writing<'_> {
    fn is_pipe(&self) -> bool {
        matches!(self, Self::Half(half) if matches!(**half, Out::Pipe(_)))
    }

    fn io(&mut self) -> &mut (dyn AsyncWrite + Send + Unpin) {
        writer!(self, stream => stream, memory => memory)
    }

    fn socket(&self) -> Socket<'_> {
        match self {
            Self::Whole(whole) => whole.socket(),
            Self::Half(half) => match &**half {
                Out::Tcp(half) => Socket::Tcp(half.as_ref()),
                Out::Unix(half) => Socket::Unix(half.as_ref()),
                Out::Pipe(_) | Out::Memory(_) => Socket::Other,
            },
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Whole {
    fn io(&mut self) -> &mut dyn Stream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
            Self::Memory(stream) => stream,
        }
    }

    /// By halves that borrow the stream.
    async fn read_and_write(&mut self, size: usize, bytes: &[u8]) -> String {
        macro_rules! both {
            ($stream:expr) => {{
                let (mut reader, mut writer) = $stream.split();
                let mut buf = vec![0; size];
                let (read, written) =
                    rt::join!(reader.read_exact(&mut buf), writer.write_all(bytes));
                format!("{}, {}", got(read, &buf), done(written))
            }};
        }
        match self {
            Self::Tcp(stream) => both!(stream),
            Self::Unix(stream) => both!(stream),
            Self::Memory(stream) => {
                let (mut reader, mut writer) = rt::io::split(stream);
                let mut buf = vec![0; size];
                let (read, written) =
                    rt::join!(reader.read_exact(&mut buf), writer.write_all(bytes));
                format!("{}, {}", got(read, &buf), done(written))
            }
        }
    }

    fn socket(&self) -> Socket<'_> {
        match self {
            Self::Tcp(stream) => Socket::Tcp(stream),
            Self::Unix(stream) => Socket::Unix(stream),
            Self::Memory(_) => Socket::Other,
        }
    }
}

fn own_read(socket: &impl AsFd, buf: &mut [u8]) -> io::Result<usize> {
    io::Read::read(&mut &*SockRef::from(socket), buf)
}

fn own_write(socket: &impl AsFd, buf: &[u8]) -> io::Result<usize> {
    io::Write::write(&mut &*SockRef::from(socket), buf)
}

/// The same bytes come again after some thousand, and there is a line each 61.
fn byte(position: u32) -> u8 {
    if position % 61 == 60 { b'\n' } else { 33 + (position * 7 % 89) as u8 }
}

fn text(bytes: &[u8]) -> String {
    if bytes.len() <= 8 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let sum = bytes.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    format!("{}... {} bytes, {sum:08x}", String::from_utf8_lossy(&bytes[..4]), bytes.len())
}

fn got(result: io::Result<usize>, buf: &[u8]) -> String {
    result.map_or_else(|error| failed(&error), |count| text(&buf[..count]))
}

fn done<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    result.map_or_else(|error| failed(&error), |value| format!("{value:?}"))
}

fn failed(error: &io::Error) -> String {
    format!("{:?}", error.kind())
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

fn interest(side: Side) -> Interest {
    match side {
        Side::Reading => Interest::READABLE,
        Side::Writing => Interest::WRITABLE,
        Side::Both => Interest::READABLE | Interest::WRITABLE,
        Side::Error => Interest::ERROR,
    }
}

fn kinds_of(ready: Ready) -> String {
    let kinds = [
        (ready.is_readable(), "readable"),
        (ready.is_writable(), "writable"),
        (ready.is_read_closed(), "read closed"),
        (ready.is_write_closed(), "write closed"),
        (ready.is_error(), "error"),
    ];
    kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect::<Vec<_>>().join(", ")
}

impl End {
    fn is(whole: Whole) -> Self {
        let end = Self::default();
        end.whole.put(whole);
        end
    }

    fn is_shared(shared: Shared) -> Self {
        let end = Self::default();
        end.to_receive.put(shared.clone());
        end.to_send.put(shared);
        end
    }

    /// Another stream takes the place of the one that was here.
    fn replace(&self, whole: Whole) {
        self.reader.clear();
        self.writer.clear();
        self.whole.put(whole);
    }

    fn reading(&self) -> Option<Reading<'_>> {
        self.reader.take().map(Reading::Half).or_else(|| self.whole.take().map(Reading::Whole))
    }

    fn writing(&self) -> Option<Writing<'_>> {
        self.writer.take().map(Writing::Half).or_else(|| self.whole.take().map(Writing::Whole))
    }

    fn split(&self) -> bool {
        let Some(whole) = self.whole.take() else { return false };
        match whole.keep() {
            Whole::Tcp(stream) => {
                let (reader, writer) = stream.into_split();
                self.reader.put(In::Tcp(reader));
                self.writer.put(Out::Tcp(writer));
            }
            Whole::Unix(stream) => {
                let (reader, writer) = stream.into_split();
                self.reader.put(In::Unix(reader));
                self.writer.put(Out::Unix(writer));
            }
            Whole::Memory(stream) => {
                let (reader, writer) = rt::io::split(stream);
                self.reader.put(In::Memory(reader));
                self.writer.put(Out::Memory(writer));
            }
        }
        true
    }

    fn reunite(&self) -> bool {
        let (Some(reader), Some(writer)) = (self.reader.take(), self.writer.take()) else {
            return false;
        };
        self.whole.put(match (reader.keep(), writer.keep()) {
            (In::Tcp(reader), Out::Tcp(writer)) => Whole::Tcp(reader.reunite(writer).unwrap()),
            (In::Unix(reader), Out::Unix(writer)) => Whole::Unix(reader.reunite(writer).unwrap()),
            (In::Memory(reader), Out::Memory(writer)) => Whole::Memory(reader.unsplit(writer)),
            _ => unreachable!("the halves of one stream"),
        });
        true
    }

    /// Leaves the runtime and comes back. (A unix stream that is half full would be writable on Volt alone, which tries it.)
    fn again(&self) -> bool {
        let Some(whole) = self.whole.take() else { return false };
        self.whole.put(match whole.keep() {
            Whole::Tcp(stream) => {
                Whole::Tcp(TcpStream::from_std(stream.into_std().unwrap()).unwrap())
            }
            whole => whole,
        });
        true
    }

    /// What was connected is here now. What was accepted is emptied first, see `random_streams.rs`.
    fn connects(&self, stream: Whole) -> String {
        let (mut all, mut buf) = (Vec::new(), [0; 64]);
        let result = loop {
            let result = match &stream {
                Whole::Tcp(stream) => stream.try_read(&mut buf),
                Whole::Unix(stream) => stream.try_read(&mut buf),
                Whole::Memory(_) => unreachable!("it has no listener"),
            };
            match result {
                Ok(count @ 1..) => all.extend_from_slice(&buf[..count]),
                result => break result,
            }
        };
        self.replace(stream);
        format!("{}, {}", text(&all), done(result))
    }

    /// The end of what is here will reset the connection.
    fn will_reset(&self) -> bool {
        let sockets = [
            self.reading().map(|reading| zero_linger(reading.socket())),
            self.writing().map(|writing| zero_linger(writing.socket())),
        ];
        sockets.contains(&Some(true))
    }
}

fn zero_linger(socket: Socket<'_>) -> bool {
    let Socket::Tcp(stream) = socket else { return false };
    stream.set_zero_linger().unwrap();
    true
}

impl Connection {
    async fn new(kind: Kind, is_small: bool) -> Self {
        let (mut listener, sockets) = (None, Cell::new(Vec::new()));
        let ends = match kind {
            Kind::Tcp => tcp_pair().map(|stream| {
                lock(&sockets).push(stream.as_raw_fd());
                End::is(Whole::Tcp(stream))
            }),
            Kind::Unix => {
                let stream = |stream| End::is(Whole::Unix(UnixStream::from_std(stream).unwrap()));
                std_pair(is_small).map(stream)
            }
            #[allow(deprecated, reason = "the descriptor is the stream's")]
            Kind::Fd => std_pair(is_small)
                .map(|stream| End::is_shared(Shared::Fd(Arc::new(AsyncFd::new(stream).unwrap())))),
            Kind::Pipe => {
                let (sender, receiver) = pipe::pipe().unwrap();
                if is_small {
                    // SAFETY: no memory is passed.
                    let size = unsafe { libc::fcntl(sender.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE) };
                    assert_eq!(size, PIPE);
                }
                let ends = [End::default(), End::default()];
                ends[0].writer.put(Out::Pipe(sender));
                ends[1].reader.put(In::Pipe(receiver));
                ends
            }
            Kind::Memory(size) => {
                let (one, other) = rt::io::duplex(size);
                [one, other].map(|stream| End::is(Whole::Memory(stream)))
            }
            Kind::Udp(udp) => udp_pair(udp).await,
            Kind::Datagram => {
                let (one, other) = UnixDatagram::pair().unwrap();
                [one, other].map(|socket| End::is_shared(Shared::Datagram(Arc::new(socket))))
            }
            Kind::Listener(is_tcp) => {
                listener = Some(Listener::new(is_tcp).await);
                Default::default()
            }
        };
        let (listener, address) = listener.unzip();
        Self { kind, ends, listener: Place(Cell::new(listener)), sockets, address }
    }

    async fn connect(&self) -> io::Result<String> {
        let address = self.address.as_ref().expect("of a listener");
        Ok(self.ends[0].connects(self.known(address.connect().await?)))
    }

    async fn accept(&self, listener: &Listener) -> io::Result<String> {
        Ok(self.ends[1].connects(self.known(listener.accept().await?)))
    }

    fn known(&self, stream: Whole) -> Whole {
        if let Whole::Tcp(stream) = &stream {
            stream.set_nodelay(true).unwrap();
            lock(&self.sockets).push(stream.as_raw_fd());
        }
        stream
    }

    /// Waits until the system has passed on all that was written to TCP. Of many small segments it keeps some back until others
    /// are acknowledged, which takes its time, and the clock of the runtimes does not know.
    fn settle(&self) {
        let pause = || std::thread::sleep(Duration::from_millis(1));
        for &socket in &*lock(&self.sockets) {
            let begin = std::time::Instant::now();
            while has_unsent(socket) {
                pause();
                if !has_unsent(socket) {
                    // What was sent by another thread of the system may be under way for a bit longer.
                    pause();
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "not sent");
            }
        }
    }

    fn is_tcp(&self) -> bool {
        matches!(self.kind, Kind::Tcp | Kind::Listener(true))
    }
}

/// Whether something that was written to `socket` has not been sent, and the connection has not been reset.
fn has_unsent(socket: RawFd) -> bool {
    const SIOCOUTQNSD: libc::c_ulong = 0x894b;
    const CLOSED: u8 = 7;
    let mut count = 0;
    // SAFETY: with this number the system writes a number to that place, or it is an error, as with what is no such socket.
    let counted = unsafe { libc::ioctl(socket, SIOCOUTQNSD as _, &raw mut count) };
    if counted != 0 || count == 0 {
        return false;
    }
    let (mut state, mut size) = (CLOSED, 1);
    let place = (&raw mut state).cast();
    // SAFETY: the system writes at most `size` bytes, the first of what is known of the connection, to that place.
    unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut size) };
    state != CLOSED
}

fn tcp_pair() -> [TcpStream; 2] {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    [client, server].map(|stream| {
        stream.set_nonblocking(true).unwrap();
        stream.set_nodelay(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    })
}

fn std_pair(is_small: bool) -> [StdStream; 2] {
    let (one, other) = StdStream::pair().unwrap();
    [one, other].map(|stream| {
        stream.set_nonblocking(true).unwrap();
        if is_small {
            SockRef::from(&stream).set_send_buffer_size(STREAM).unwrap();
        }
        stream
    })
}

async fn udp_pair(udp: Udp) -> [End; 2] {
    let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addresses = [other.local_addr().unwrap(), one.local_addr().unwrap()];
    let mut ends = Vec::new();
    for (socket, peer) in [one, other].into_iter().zip(addresses) {
        let to = (udp == Udp::Unconnected).then_some(peer);
        if to.is_none() {
            socket.connect(peer).await.unwrap();
        }
        ends.push(End::is_shared(Shared::Udp(Arc::new(socket), to)));
    }
    ends.try_into().ok().expect("two")
}

impl Listener {
    async fn new(is_tcp: bool) -> (Self, Address) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if is_tcp {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = Address::Tcp(listener.local_addr().unwrap());
            return (Self::Tcp(listener), address);
        }
        // ORD relaxed: only the number matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("\0{}/{}/{number}", module_path!(), std::process::id());
        (Self::Unix(UnixListener::bind(&name).unwrap()), Address::Unix(name))
    }

    async fn accept(&self) -> io::Result<Whole> {
        Ok(match self {
            Self::Tcp(listener) => Whole::Tcp(listener.accept().await?.0),
            Self::Unix(listener) => Whole::Unix(listener.accept().await?.0),
        })
    }
}

impl Address {
    async fn connect(&self) -> io::Result<Whole> {
        Ok(match self {
            Self::Tcp(address) => Whole::Tcp(TcpStream::connect(address).await?),
            Self::Unix(name) => Whole::Unix(UnixStream::connect(name).await?),
        })
    }
}

enum Source<'p> {
    Stream(Reading<'p>),
    Shared(Taken<'p, Shared>),
}

enum Target<'p> {
    Stream(Writing<'p>),
    Shared(Taken<'p, Shared>),
}
