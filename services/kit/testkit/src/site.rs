//! A site for tests: pages by path, changed at any time, over real HTTP on 127.0.0.1.
//!
//! It answers one GET per connection from what it was given and knows nothing else; what is fetched from elsewhere is
//! tested against it, so that no test asks a live host.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

type Pages = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Longest head of a request that is read, in bytes.
const HEAD: usize = 16 * 1024;

/// The running site. Dropping it closes the port.
pub struct Site {
    address: SocketAddr,
    pages: Pages,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Site {
    /// Without a page.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound listener has an address");
        let pages = Pages::default();
        let mut tasks = JoinSet::new();
        let served = Arc::clone(&pages);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer(stream, Arc::clone(&served)));
            }
        });
        Self {
            address,
            pages,
            _tasks: tasks,
        }
    }

    /// `http://127.0.0.1:port`.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts a page at a path, its query included if it has one, or replaces it.
    pub fn page(&self, path: &str, content: impl Into<Vec<u8>>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(path.to_owned(), content.into());
    }

    /// Takes a page away.
    pub fn remove(&self, path: &str) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

async fn answer(mut stream: TcpStream, pages: Pages) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD {
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let bare = path.split('?').next().unwrap_or_default();
    let page = {
        let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.get(path).or_else(|| pages.get(bare)).cloned()
    };
    let (status, content) = match page {
        Some(content) => ("200 OK", content),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = match bare.rsplit('.').next() {
        Some("json") => "application/json",
        Some("md") => "text/markdown",
        _ => "application/octet-stream",
    };
    let length = content.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    // Who went away hears nothing.
    if stream.write_all(head.as_bytes()).await.is_ok() {
        _ = stream.write_all(&content).await;
        _ = stream.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_is_there_until_it_is_taken_away() {
        crate::install_crypto();
        let site = Site::start().await;
        let address = format!("{}/a/b.json?q=1", site.base());
        site.page("/a/b.json", "{}");
        let answer = reqwest::get(&address).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.text().await.expect("a body"), "{}");
        site.remove("/a/b.json");
        assert_eq!(reqwest::get(&address).await.expect("an answer").status(), 404);
    }
}
