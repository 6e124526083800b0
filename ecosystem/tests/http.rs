//! axum's own server, with the clients that people use: reqwest, hyper-util, tungstenite.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::Path;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use futures::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tower_http::timeout::TimeoutLayer;

fn app() -> Router {
    let limit = Duration::from_millis(20);
    Router::new()
        .route(
            "/double/{number}",
            get(|Path(number): Path<u64>| async move { (2 * number).to_string() }),
        )
        .route("/echo", post(|Json(value): Json<Value>| async move { Json(value) }))
        .route("/silent", get(silent))
        .route("/ws", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }))
        .route(
            "/never",
            get(std::future::pending::<()>)
                .layer(TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limit)),
        )
}

/// Events that never come, so that the client only sees what keeps the connection alive.
async fn silent() -> Sse<impl futures::Stream<Item = Result<Event, Infallible>>> {
    let alive = KeepAlive::new().interval(Duration::from_millis(5)).text("alive");
    Sse::new(futures::stream::pending()).keep_alive(alive)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Serves until the sender is used.
async fn serve() -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let served = axum::serve(listener, app());
        served.with_graceful_shutdown(async { stopped.await.unwrap() }).await.unwrap();
    });
    (address, stop, server)
}

async fn every_kind_of_request() {
    let (address, stop, server) = serve().await;
    let client = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();

    let doubled = (0..50_u64).map(|number| {
        let request = client.get(format!("http://{address}/double/{number}"));
        tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() })
    });
    let doubled: Vec<_> = futures::future::join_all(doubled).await;
    for (number, answer) in doubled.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), (2 * number).to_string());
    }

    let sent = json!({ "name": "volt", "numbers": [1, 2, 3] });
    let answer = client.post(format!("http://{address}/echo")).json(&sent).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap(), sent);

    let answer = client.get(format!("http://{address}/never")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);

    let answer = client.get(format!("http://{address}/silent")).send().await.unwrap();
    let first = answer.bytes_stream().next().await.unwrap().unwrap();
    assert_eq!(first, Bytes::from(": alive\n\n"));

    // A client's own limit, which may be over before the answer begins.
    let limited = client.get(format!("http://{address}/silent")).timeout(Duration::from_millis(20));
    let error = match limited.send().await {
        Ok(answer) => answer.bytes().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_timeout(), "{error}");

    let pooled: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = pooled.get(format!("http://{address}/double/21").parse().unwrap()).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "42");

    let (mut socket, _) =
        tokio_tungstenite::connect_async(format!("ws://{address}/ws")).await.unwrap();
    for number in 0..10 {
        let message = Message::text(number.to_string());
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }
    socket.close(None).await.unwrap();

    drop((client, pooled));
    stop.send(()).unwrap();
    server.await.unwrap();
}

#[tokio::test]
async fn every_kind_of_request_on_one_thread() {
    every_kind_of_request().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_request_on_two_workers() {
    every_kind_of_request().await;
}

#[test]
fn a_client_may_have_a_runtime_of_its_own() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (address, _stop, _server) = runtime.block_on(serve());
    let answer = runtime.spawn_blocking(move || {
        let own = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        own.block_on(async {
            let answer = reqwest::get(format!("http://{address}/double/4")).await.unwrap();
            answer.text().await.unwrap()
        })
    });
    assert_eq!(runtime.block_on(answer).unwrap(), "8");
}
