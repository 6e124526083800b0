//! Libraries written for Tokio's traits, on Volt's sockets.

#[path = "support/net.rs"]
mod support;

use futures::{SinkExt, StreamExt};
use support::{each, tcp_pair};
use tokio_util::codec::{Decoder, Framed};
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec, LinesCodec};

#[test]
fn framed_lines_over_a_whole_stream() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        let answering = volt::spawn(async move {
            let (mut lines, mut count) = (LinesCodec::new_with_max_length(64).framed(server), 0);
            while let Some(line) = lines.next().await {
                lines.send(line.unwrap().to_uppercase()).await.unwrap();
                count += 1;
            }
            count
        });
        let mut lines = Framed::new(client, LinesCodec::new());
        for i in 0..100 {
            lines.send(format!("line {i}")).await.unwrap();
            assert_eq!(lines.next().await.unwrap().unwrap(), format!("LINE {i}"));
        }
        drop(lines);
        assert_eq!(answering.await.unwrap(), 100);
    });
}

/// Frames that are larger than the socket's buffers, through owned halves, in both directions at once.
#[test]
fn length_delimited_frames_over_halves() {
    each(|| async {
        let (client, server) = tcp_pair().await;
        let echo = volt::spawn(async move {
            let (reader, writer) = server.into_split();
            let frames = FramedRead::new(reader, LengthDelimitedCodec::new());
            let sink = FramedWrite::new(writer, LengthDelimitedCodec::new());
            frames.map(|frame| frame.map(bytes::BytesMut::freeze)).forward(sink).await.unwrap();
        });
        let (reader, writer) = client.into_split();
        let mut back = FramedRead::new(reader, LengthDelimitedCodec::new());
        let mut sink = FramedWrite::new(writer, LengthDelimitedCodec::new());
        let sizes = [0, 1, 1000, 1_000_000, 7];
        let sending = volt::spawn(async move {
            for size in sizes {
                sink.send(bytes::Bytes::from(vec![size as u8; size])).await.unwrap();
            }
        });
        for size in sizes {
            let frame = back.next().await.unwrap().unwrap();
            assert!(frame == vec![size as u8; size]);
        }
        sending.await.unwrap();
        assert!(back.next().await.is_none());
        echo.await.unwrap();
    });
}

/// Volt's stream as one of futures-io's, by an adapter that is not Volt's.
#[test]
fn a_foreign_adapter_takes_a_stream() {
    use futures::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::compat::TokioAsyncReadCompatExt;

    each(|| async {
        let (client, server) = tcp_pair().await;
        let (mut client, mut server) = (client.compat(), server.compat());
        client.write_all(b"hello").await.unwrap();
        client.close().await.unwrap();
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"hello");
    });
}
