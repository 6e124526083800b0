//! What the servers among the examples share: an address from the command line, an accept loop, and
//! an end by ctrl-c that lets the connections finish.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use volt::net::{TcpListener, TcpStream};
use volt::sync::watch;
use volt::task::JoinSet;
use volt::time::{sleep, timeout};

/// Becomes true when the server is about to end.
pub(crate) type Stopping = watch::Receiver<bool>;

/// How long connections may go on after ctrl-c.
const GRACE: Duration = Duration::from_secs(5);

/// Serves each client at `address` by `connection`, until ctrl-c. The line that says where it listens
/// has `scheme` before the address.
pub(crate) async fn serve<F, E>(
    address: &str,
    scheme: &str,
    connection: impl Fn(TcpStream, Stopping) -> F,
) -> Result<(), String>
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Display + 'static,
{
    let cannot = |error| format!("cannot listen on {address:?}: {error}");
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    // Before anybody is told where to connect: from here on ctrl-c does not end the process by itself.
    let interrupt = interrupt().map_err(|error| format!("cannot wait for ctrl-c: {error}"))?;
    println!("listening on {scheme}{}", listener.local_addr().map_err(cannot)?);
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut interrupt = pin!(interrupt);
    loop {
        volt::select! {
            () = &mut interrupt => break,
            accepted = listener.accept() => match accepted {
                Ok((client, from)) => {
                    connections.spawn(reported(from, connection(client, stopping.clone())));
                }
                Err(error) => {
                    // Out of descriptors, for one: let some clients finish.
                    eprintln!("accept: {error}");
                    sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stop.send_replace(true);
    eprintln!("stopping; open connections: {}", connections.len());
    let finished = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        eprintln!("gave up on {} connections", connections.len());
    }
    Ok(())
}

async fn reported<E: Display>(from: SocketAddr, connection: impl Future<Output = Result<(), E>>) {
    if let Err(error) = connection.await {
        eprintln!("{from}: {error}");
    }
}

/// Completes at the next ctrl-c after this call.
#[cfg(unix)]
fn interrupt() -> io::Result<impl Future<Output = ()>> {
    use volt::signal::unix::{SignalKind, signal};
    let mut interrupts = signal(SignalKind::interrupt())?;
    Ok(async move { _ = interrupts.recv().await })
}

#[cfg(not(unix))]
fn interrupt() -> io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
}

/// The arguments, of which there are at most `most`, and no options. If not, prints `usage`, and the exit code is 2.
pub(crate) fn arguments(
    most: usize,
    usage: &str,
) -> Result<impl Iterator<Item = String>, ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() > most || arguments.iter().any(|argument| argument.starts_with('-')) {
        eprintln!("usage: {usage}");
        return Err(ExitCode::from(2));
    }
    Ok(arguments.into_iter())
}

/// A failure becomes a line on the standard error and the exit code 1.
pub(crate) fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
