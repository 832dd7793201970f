//! What is particular to chat completions; the rest is in the suite that all providers pass.

use super::*;

#[test]
fn the_endpoint_follows_the_base_url() {
    let of = |base: &str| endpoint(base, PATH).map(|url| url.to_string());
    assert_eq!(
        of("https://host/v1/").as_deref(),
        Ok("https://host/v1/chat/completions")
    );
    assert_eq!(
        of("http://host:1/v1/chat/completions").as_deref(),
        Ok("http://host:1/v1/chat/completions")
    );
    assert_eq!(
        of("http://host/v1?api-version=1").as_deref(),
        Ok("http://host/v1/chat/completions?api-version=1")
    );
    assert!(of("file:///x").is_err() && of("nonsense").is_err());
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_without_being_shown() {
    let config = OpenAiConfig::new("http://127.0.0.1:9/v1", Some(Secret::new("sec\nret")));
    let error = OpenAiProvider::new(config).expect_err("a line break");
    assert!(matches!(error, ModelError::InvalidRequest { .. }) && !error.to_string().contains("sec"));
}
