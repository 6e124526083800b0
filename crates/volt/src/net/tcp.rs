//! TCP: listener, stream and its halves, and the socket that becomes either.
//!
//! # Examples
//! Questions in one task, answers in another, on one connection:
//! ```
//! # volt::run(async {
//! use volt::io::{AsyncReadExt, AsyncWriteExt};
//! use volt::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
//! use volt::net::{TcpListener, TcpStream};
//!
//! async fn ask(mut writer: OwnedWriteHalf) -> std::io::Result<()> {
//!     for question in 1..=3 {
//!         writer.write_u8(question).await?;
//!     }
//!     Ok(()) // the end of the questions: dropping the half shuts the connection down for writing
//! }
//!
//! async fn answers(mut reader: OwnedReadHalf) -> std::io::Result<Vec<u8>> {
//!     let mut answers = Vec::new();
//!     reader.read_to_end(&mut answers).await?;
//!     Ok(answers)
//! }
//!
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let (reader, writer) = TcpStream::connect(listener.local_addr()?).await?.into_split();
//! let (asking, answers) = (volt::spawn(ask(writer)), volt::spawn(answers(reader)));
//! let (mut server, _) = listener.accept().await?;
//! while let Ok(question) = server.read_u8().await {
//!     server.write_u8(question * 2).await?;
//! }
//! drop(server);
//! asking.await??;
//! assert_eq!(answers.await??, [2, 4, 6]);
//! # std::io::Result::Ok(())
//! # }).unwrap();
//! ```

mod listener;
mod socket;
mod stream;

pub use self::listener::TcpListener;
pub use self::socket::TcpSocket;
pub use self::stream::TcpStream;

use super::split;

/// The borrowed reading half of a [`TcpStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::AsyncReadExt;
/// use volt::net::tcp::ReadHalf;
/// use volt::net::{TcpListener, TcpStream};
///
/// async fn first(mut reader: ReadHalf<'_>) -> std::io::Result<u8> {
///     reader.read_u8().await
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let mut client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, _) = listener.accept().await?;
/// server.try_write(&[7])?;
/// assert_eq!(first(client.split().0).await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type ReadHalf<'a> = split::ReadHalf<'a, TcpStream>;
/// The borrowed writing half of a [`TcpStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::tcp::WriteHalf;
/// use volt::net::{TcpListener, TcpStream};
///
/// async fn greet(mut writer: WriteHalf<'_>) -> std::io::Result<()> {
///     writer.write_u8(7).await
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let mut client = TcpStream::connect(listener.local_addr()?).await?;
/// let (mut server, _) = listener.accept().await?;
/// greet(client.split().1).await?;
/// assert_eq!(server.read_u8().await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type WriteHalf<'a> = split::WriteHalf<'a, TcpStream>;
/// The owned reading half of a [`TcpStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::AsyncReadExt;
/// use volt::net::tcp::OwnedReadHalf;
/// use volt::net::{TcpListener, TcpStream};
///
/// async fn first(mut reader: OwnedReadHalf) -> std::io::Result<u8> {
///     reader.read_u8().await
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, _) = listener.accept().await?;
/// server.try_write(&[7])?;
/// let (reader, _writer) = client.into_split();
/// assert_eq!(volt::spawn(first(reader)).await.unwrap()?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type OwnedReadHalf = split::OwnedReadHalf<TcpStream>;
/// The owned writing half of a [`TcpStream`].
///
/// ```
/// # volt::run(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::tcp::OwnedWriteHalf;
/// use volt::net::{TcpListener, TcpStream};
///
/// async fn greet(mut writer: OwnedWriteHalf) -> std::io::Result<()> {
///     writer.write_u8(7).await
/// }
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (mut server, _) = listener.accept().await?;
/// let (_reader, writer) = client.into_split();
/// volt::spawn(greet(writer)).await.unwrap()?;
/// assert_eq!(server.read_u8().await?, 7);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub type OwnedWriteHalf = split::OwnedWriteHalf<TcpStream>;
split::reunite_error!(
    TcpStream,
    "use volt::net::tcp::ReuniteError;"
    "use volt::net::{TcpListener, TcpStream};"
    ""
    "let listener = TcpListener::bind(\"127.0.0.1:0\").await?;"
    "let (one, _) = TcpStream::connect(listener.local_addr()?).await?.into_split();"
    "let (_, other) = TcpStream::connect(listener.local_addr()?).await?.into_split();"
    "let ReuniteError(reader, writer) = one.reunite(other).unwrap_err();"
    "assert_ne!(reader.local_addr()?, writer.local_addr()?, \"halves of two streams\");"
);
