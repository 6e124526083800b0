//! The examples serve: each is started as a process and driven by a client that is not of it.

#[path = "support/net.rs"]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode};

/// The example that cargo has built next to this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(|deps| deps.parent()).unwrap();
    let example = target.join("examples").join(name);
    assert!(example.exists(), "build it first: cargo build -p volt-rt --example {name}");
    Command::new(example)
}

/// A running example; killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts an example on a port of the system's choice.
    fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// The same with more arguments.
    fn start_with(name: &str, arguments: &[&str]) -> Self {
        let mut command = example(name);
        command.arg("127.0.0.1:0").args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("listening on ");
        let address = address.trim_start_matches("http://").parse().expect("an address is printed");
        Self { child, address }
    }

    /// Sends what ctrl-c does, and returns what the server says on its way out.
    fn interrupt(mut self) -> String {
        let pid = libc::pid_t::try_from(self.child.id()).unwrap();
        // SAFETY: the call touches no memory; the child has not been waited for, so the number is
        // still its own.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both do nothing to a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tcp_echo_returns_what_it_gets() {
    let server = Server::start("tcp_echo");
    let clients: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for (i, mut client) in clients.iter().enumerate() {
        client.write_all(format!("client {i}").as_bytes()).unwrap();
    }
    for (i, mut client) in clients.iter().enumerate() {
        client.shutdown(Shutdown::Write).unwrap();
        let mut back = String::new();
        client.read_to_string(&mut back).unwrap();
        assert_eq!(back, format!("client {i}"));
    }
    // A client that goes away in the middle harms nobody.
    let mut rude = server.connect();
    rude.write_all(&[0; 1 << 16]).unwrap();
    drop(rude);
    let mut client = server.connect();
    let data: Vec<u8> = (0..1 << 20).map(|i: u32| i as u8).collect();
    let sent = data.clone();
    let mut writer = client.try_clone().unwrap();
    let writer = std::thread::Builder::new().spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    assert!(back == data);
    writer.unwrap().join().unwrap();
}

#[test]
fn http_hello_serves_plain_sockets() {
    let server = Server::start("http_hello");
    let mut client = server.connect();
    // Two requests at once on one connection, the second in two pieces.
    client.write_all(b"GET / HTTP/1.1\r\nhost: volt\r\n\r\nGET / HTTP/1.1\r\nho").unwrap();
    std::thread::sleep(Duration::from_millis(5));
    client.write_all(b"st: volt\r\nconnection: close\r\n\r\n").unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
    assert_eq!(answers.matches("\r\n\r\nHello, Volt!\n").count(), 2, "{answers}");
    // What is no request is answered as such.
    let mut client = server.connect();
    client.write_all(b"no request\r\n\r\n").unwrap();
    answers.clear();
    client.read_to_string(&mut answers).unwrap();
    assert!(answers.starts_with("HTTP/1.1 400 "), "{answers}");
}

#[test]
fn http_hello_serves_hypers_client_on_volt() {
    let server = Server::start("http_hello");
    let address = server.address;
    support::each(move || async move {
        let clients: Vec<_> = (0..16).map(|_| volt::spawn(many_requests(address))).collect();
        for client in clients {
            client.await.unwrap();
        }
    });
}

async fn many_requests(address: SocketAddr) {
    let stream = volt::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    let connection = volt::spawn(connection);
    for _ in 0..20 {
        let request = Request::get("/").header("host", "volt").body(Empty::<bytes::Bytes>::new());
        // The connection's task may not have seen yet that the answer before has been read.
        sender.ready().await.unwrap();
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], b"Hello, Volt!\n");
    }
    drop(sender);
    connection.await.unwrap().unwrap();
}

/// A client that shares no code with the server: neither hyper nor Volt. Each agent keeps its
/// connection, which the server counts.
#[test]
fn http_hello_serves_a_foreign_client_with_any_number_of_workers() {
    for workers in ["1", "2", "8"] {
        let server = Server::start_with("http_hello", &[workers]);
        let url = format!("http://{}/", server.address);
        let agents: Vec<ureq::Agent> = (0..4).map(|_| agent()).collect();
        std::thread::scope(|scope| {
            for agent in &agents {
                scope.spawn(|| {
                    for round in 0..25 {
                        let (url, head) = (format!("{url}{round}"), round % 3 == 2);
                        let request = if head { agent.head(&url) } else { agent.get(&url) };
                        let mut response = request.call().unwrap();
                        assert_eq!(response.status(), 200);
                        assert_eq!(response.headers()["content-length"], "13");
                        let body = response.body_mut().read_to_string().unwrap();
                        assert_eq!(body, if head { "" } else { "Hello, Volt!\n" });
                    }
                });
            }
        });
        let said = server.interrupt();
        assert!(said.contains("stopping; open connections: 4"), "{workers} workers: {said}");
    }
}

/// One with a pool of connections of its own.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20)));
    config.proxy(None).build().new_agent()
}

#[test]
fn ctrl_c_lets_echoes_finish() {
    let server = Server::start("tcp_echo");
    let address = server.address;
    let (mut idle, mut busy) = (server.connect(), server.connect());
    busy.write_all(b"before the end").unwrap();
    let mut first = [0; 1];
    busy.read_exact(&mut first).unwrap();
    let said = server.interrupt();
    assert!(said.contains("stopping; open connections: 2"), "{said}");
    let mut rest = String::new();
    busy.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "efore the end");
    assert_eq!(idle.read(&mut first).unwrap(), 0);
    assert!(TcpStream::connect(address).is_err(), "the listener is closed");
}

#[test]
fn ctrl_c_ends_idle_http_connections() {
    let server = Server::start("http_hello");
    let mut client = server.connect();
    client.write_all(b"GET / HTTP/1.1\r\nhost: volt\r\n\r\n").unwrap();
    let mut start = [0; 15];
    client.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    let said = server.interrupt();
    assert!(said.contains("stopping; open connections: 1"), "{said}");
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("Hello, Volt!\n"), "{rest}");
}

#[test]
fn wrong_arguments_are_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (name, arguments, complaint) in [
        ("tcp_echo", vec!["nonsense"], "cannot listen on \"nonsense\": "),
        ("tcp_echo", vec![&*taken], "cannot listen on \"127.0.0.1:"),
        ("http_hello", vec!["127.0.0.1:99999"], "cannot listen on \"127.0.0.1:99999\": "),
        (
            "http_hello",
            vec!["127.0.0.1:0", "0"],
            "the number of workers is \"0\", not a positive number",
        ),
    ] {
        let output = example(name).args(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name} {arguments:?}: {said}");
        assert!(said.starts_with(complaint), "{name} {arguments:?}: {said}");
    }
}

#[test]
fn an_option_or_too_many_arguments_get_the_usage() {
    for (name, arguments) in [
        ("tcp_echo", &["--help"][..]),
        ("tcp_echo", &["127.0.0.1:0", "more"]),
        ("http_hello", &["127.0.0.1:0", "-2"]),
        ("http_hello", &["127.0.0.1:0", "2", "more"]),
        ("interval_lateness", &["-h"]),
        ("interval_lateness", &["10", "threads"]),
        ("interval_lateness", &["10", "current", "more"]),
        ("offload", &["--help"]),
        ("idle", &["--help"]),
    ] {
        let output = example(name).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name} {arguments:?}: {said}");
        assert!(said.starts_with(&format!("usage: {name}")), "{name} {arguments:?}: {said}");
    }
}
