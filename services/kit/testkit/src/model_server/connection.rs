//! One connection: read one request, record it, write the scripted bytes, close.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::reply::Reply;
use super::{RecordedRequest, Shared};

const MAX_HEAD: usize = 64 * 1024;

pub(super) async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    // A client that goes away in the middle is part of many tests and no fault of the server.
    drop(converse(&mut stream, &shared).await);
}

async fn converse(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let request = shared.record(read_request(stream).await?);
    let reply = shared.answer(&request);
    match reply.render(request.protocol(), request.wants_stream()) {
        None => Ok(()),
        Some((content_type, body)) => write_reply(stream, shared, &reply, content_type, &body).await,
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<RecordedRequest> {
    let mut received = Vec::new();
    let head_end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if received.len() > MAX_HEAD || stream.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&received[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = received.split_off(head_end);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(RecordedRequest {
        index: 0,
        method,
        path,
        headers,
        body: Bytes::from(body),
    })
}

async fn write_reply(
    stream: &mut TcpStream,
    shared: &Shared,
    reply: &Reply,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\nconnection: close\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    if !reply
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        // Writing to a string cannot fail.
        let _ = write!(head, "content-type: {content_type}\r\n");
    }
    for (name, value) in &reply.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;

    let cut = reply.cut(body);
    let end = cut.map_or(body.len(), |cut| cut.min(body.len()));
    let pause = reply.hang_after.map(|hang| hang.min(end));
    write_pieces(stream, &body[..pause.unwrap_or(end)], reply.piece).await?;
    if let Some(pause) = pause {
        let permit = shared.releases.acquire().await.map_err(io::Error::other)?;
        permit.forget();
        write_pieces(stream, &body[pause..end], reply.piece).await?;
    }
    if cut.is_none() {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.shutdown().await
}

async fn write_pieces(stream: &mut TcpStream, body: &[u8], piece: Option<usize>) -> io::Result<()> {
    for part in body.chunks(piece.unwrap_or(16 * 1024)) {
        let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
        chunk.extend_from_slice(part);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await?;
        stream.flush().await?;
    }
    Ok(())
}
