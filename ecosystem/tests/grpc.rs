//! tonic, server and client, with its limits of time.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Endpoint, Server};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

async fn calls_and_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reporter, service) = tonic_health::server::health_reporter();
    let server = tokio::spawn(
        Server::builder()
            .http2_keepalive_interval(Some(Duration::from_millis(5)))
            .timeout(Duration::from_secs(20))
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );

    let channel = Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect_timeout(Duration::from_secs(20))
        .http2_keep_alive_interval(Duration::from_millis(5))
        .connect()
        .await
        .unwrap();
    let mut client = HealthClient::new(channel);
    let request = || HealthCheckRequest { service: "volt".to_owned() };
    assert_eq!(client.check(request()).await.unwrap_err().code(), Code::NotFound);
    reporter.set_service_status("volt", ServingStatus::Serving).await;

    let mut watched = client.watch(request()).await.unwrap().into_inner();
    // What it is now comes first, and then each change.
    assert_eq!(watched.next().await.unwrap().unwrap().status, 1);
    for (status, number) in [(ServingStatus::NotServing, 2), (ServingStatus::Serving, 1)] {
        reporter.set_service_status("volt", status).await;
        assert_eq!(watched.next().await.unwrap().unwrap().status, number);
    }

    // A server that accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = channel.timeout(Duration::from_millis(20)).connect_lazy();
    let error = HealthClient::new(channel).check(request()).await.unwrap_err();
    assert!([Code::Cancelled, Code::DeadlineExceeded].contains(&error.code()), "{error}");

    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn calls_and_streams_on_one_thread() {
    calls_and_streams().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_streams_on_two_workers() {
    calls_and_streams().await;
}
