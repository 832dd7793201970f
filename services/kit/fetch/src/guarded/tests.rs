use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{DATE, RETRY_AFTER};
use axum::response::IntoResponse;
use axum::routing::get;
use steward_testkit::MockClock;

use super::*;
use crate::Cached;

/// Knows the names that a test gives it.
#[derive(Debug)]
struct Names(Vec<(&'static str, &'static str)>);

#[async_trait::async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let found = self.0.iter().filter(|(name, _)| *name == host);
        found.map(|(_, address)| address.parse().expect("an address")).collect()
    }
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn guarded(permitted: &[&str], names: Vec<(&'static str, &'static str)>, tokens: Vec<Token>) -> Guarded {
    steward_runtime::tls::install_provider();
    let settings = Settings {
        permitted_origins: permitted.iter().map(|origin| (*origin).to_owned()).collect(),
        max_bytes: 1_000,
        ..Settings::default()
    };
    Guarded::new(settings, tokens, Arc::new(MockClock::default()), Arc::new(Names(names))).expect("a fetcher")
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("an address")
}

#[tokio::test]
async fn h_8_addresses_that_are_not_public_https_are_refused() {
    let fetcher = guarded(
        &[],
        vec![
            ("inside.example", "10.0.0.7"),
            ("mixed.example", "1.1.1.1"),
            ("mixed.example", "127.0.0.1"),
        ],
        vec![],
    );
    for (address, reason) in [
        ("http://public.example/x", "FETCH_ADDRESS_REFUSED"),
        ("file:///etc/passwd", "FETCH_ADDRESS_REFUSED"),
        ("ftp://public.example/x", "FETCH_ADDRESS_REFUSED"),
        ("https://user:pass@public.example/", "FETCH_ADDRESS_REFUSED"),
        ("https://127.0.0.1/", "FETCH_PRIVATE_ADDRESS"),
        ("https://[::1]/", "FETCH_PRIVATE_ADDRESS"),
        ("https://0x7f000001/", "FETCH_PRIVATE_ADDRESS"),
        ("https://2130706433/", "FETCH_PRIVATE_ADDRESS"),
        ("https://169.254.169.254/latest", "FETCH_PRIVATE_ADDRESS"),
        ("https://inside.example/", "FETCH_PRIVATE_ADDRESS"),
        ("https://mixed.example/", "FETCH_PRIVATE_ADDRESS"),
        ("https://nowhere.example/", "FETCH_UNRESOLVED"),
    ] {
        let error = fetcher.fetch(Request::get(url(address))).await.expect_err(address);
        assert_eq!(steward_base::Fault::reason(&error), reason, "{address}: {error}");
    }
}

#[tokio::test]
async fn h_8_each_redirect_is_checked_like_the_first_address() {
    let inside = serve(Router::new().route("/secret", get(|| async { "inside" }))).await;
    let target = format!("{inside}/secret");
    let outside = serve(
        Router::new()
            .route(
                "/jump",
                get(move || async move { axum::response::Redirect::temporary(&target) }),
            )
            .route(
                "/meta",
                get(|| async { axum::response::Redirect::temporary("https://169.254.169.254/") }),
            )
            .route("/loop", get(|| async { axum::response::Redirect::temporary("/loop") }))
            .route("/ok", get(|| async { axum::response::Redirect::permanent("/end") }))
            .route("/end", get(|| async { "end" })),
    )
    .await;
    let fetcher = guarded(&[&outside], vec![], vec![]);
    let ask = async |path: &str| fetcher.fetch(Request::get(url(&format!("{outside}{path}")))).await;
    assert!(matches!(ask("/jump").await, Err(FetchError::Address { .. })));
    assert!(matches!(ask("/meta").await, Err(FetchError::Private { .. })));
    assert!(matches!(
        ask("/loop").await,
        Err(FetchError::Redirects { limit: 5, .. })
    ));
    let answer = ask("/ok").await.expect("an answer");
    assert_eq!((answer.body.as_ref(), answer.url.path()), (b"end".as_slice(), "/end"));
}

#[tokio::test]
async fn h_8_a_token_goes_to_its_own_host_only() {
    let echo = get(|headers: HeaderMap| async move {
        headers
            .get("authorization")
            .map_or("none", |value| value.to_str().unwrap_or("odd"))
            .to_owned()
    });
    let other = serve(Router::new().route("/", echo.clone()))
        .await
        .replace("127.0.0.1", "other.example");
    let target = format!("{other}/");
    let own = serve(Router::new().route("/", echo).route(
        "/away",
        get(move || async move { axum::response::Redirect::temporary(&target) }),
    ))
    .await
    .replace("127.0.0.1", "own.example");
    let names = vec![("own.example", "127.0.0.1"), ("other.example", "127.0.0.1")];
    let token = Token {
        host: "own.example".to_owned(),
        authorization: "Bearer made-up".to_owned(),
    };
    assert!(!format!("{token:?}").contains("made-up"));
    let fetcher = guarded(&[&own, &other], names, vec![token]);
    let ask = async |address: String| {
        fetcher
            .fetch(Request::get(url(&address)))
            .await
            .expect("an answer")
            .body
    };
    assert_eq!(ask(format!("{own}/")).await.as_ref(), b"Bearer made-up");
    assert_eq!(ask(format!("{own}/away")).await.as_ref(), b"none");
}

#[tokio::test]
async fn h_8_an_answer_is_read_up_to_its_limit() {
    let base = serve(
        Router::new()
            .route("/stated", get(|| async { "x".repeat(2_000) }))
            .route(
                "/streamed",
                get(|| async {
                    let chunks = futures::stream::iter((0..50).map(|_| Ok::<_, std::io::Error>("y".repeat(100))));
                    axum::body::Body::from_stream(chunks)
                }),
            )
            .route("/small", get(|| async { "small" })),
    )
    .await;
    let fetcher = guarded(&[&base], vec![], vec![]);
    for path in ["/stated", "/streamed"] {
        let result = fetcher.fetch(Request::get(url(&format!("{base}{path}")))).await;
        assert!(
            matches!(result, Err(FetchError::TooLarge { limit: 1_000, .. })),
            "{result:?}"
        );
    }
    let result = fetcher
        .fetch(Request::get(url(&format!("{base}/small"))).limit(3))
        .await;
    assert!(matches!(result, Err(FetchError::TooLarge { limit: 3, .. })));
}

#[tokio::test]
async fn h_8_a_host_that_asks_for_patience_gets_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let base = serve(Router::new().route(
        "/",
        get(move || async move {
            counter.fetch_add(1, Ordering::SeqCst);
            let at = "Sun, 06 Nov 1994 08:49:20 GMT";
            let until = "Sun, 06 Nov 1994 08:49:37 GMT";
            (StatusCode::TOO_MANY_REQUESTS, [(DATE, at), (RETRY_AFTER, until)]).into_response()
        }),
    ))
    .await;
    let fetcher = guarded(&[&base], vec![], vec![]);
    for _ in 0..2 {
        let error = fetcher.fetch(Request::get(url(&base))).await.expect_err("not now");
        assert_eq!(steward_base::Fault::retry_after(&error), Some(Duration::from_secs(17)));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the second question was not sent");
}

#[tokio::test]
async fn h_8_an_answer_that_still_holds_is_not_sent_again() {
    async fn page(State(sent): State<Arc<AtomicUsize>>, headers: HeaderMap) -> axum::response::Response {
        if headers.get(IF_NONE_MATCH).is_some_and(|etag| etag == "\"v1\"") {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        sent.fetch_add(1, Ordering::SeqCst);
        ([(ETAG, "\"v1\"")], "the page").into_response()
    }
    let sent = Arc::new(AtomicUsize::new(0));
    let base = serve(Router::new().route("/", get(page)).with_state(Arc::clone(&sent))).await;
    let cached = Cached::new(guarded(&[&base], vec![], vec![]), 10_000);
    for _ in 0..3 {
        let answer = cached.fetch(Request::get(url(&base))).await.expect("an answer");
        assert_eq!((answer.status, answer.body.as_ref()), (200, b"the page".as_slice()));
    }
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}
